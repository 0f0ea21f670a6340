"""A cluster that is not there is one line, at once."""

from __future__ import annotations

import os
import signal

import pytest

from kinodex.jobs.errors import UsageError
from kinodex.jobs.workers import connected, restored_process


@pytest.mark.parametrize("address", ["127.0.0.1:9", "ray://127.0.0.1:9"])
def test_an_address_where_nobody_listens_is_refused(address: str) -> None:
    with pytest.raises(UsageError, match=f"cannot reach Ray at {address}.*--ray without one"), connected(address):
        pass


def test_what_ray_changes_in_the_process_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    handler = signal.getsignal(signal.SIGTERM)
    with restored_process():
        os.environ["RAY_AUTH_MODE"] = "token"
        os.environ["RAY_OF_THE_TEST"] = "1"
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    assert (os.environ["RAY_AUTH_MODE"], os.environ.get("RAY_OF_THE_TEST")) == ("disabled", None)
    assert signal.getsignal(signal.SIGTERM) == handler
