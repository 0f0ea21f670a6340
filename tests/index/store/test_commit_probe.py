"""A store that loses commits is refused before a library is made there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kinodex.index.errors import UnsafeStore
from kinodex.index.library import Library
from tests.support.libraries.random_library import SETTINGS, fingerprint
from tests.support.servers.s3_server import environment, s3_server, send


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with s3_server() as address:
        send(f"{address}/films", "PUT")
        yield address


@pytest.fixture
def address(server, monkeypatch) -> str:
    """The server's; whoever uses a library is told of it by the environment alone."""
    for name, value in environment(server).items():
        monkeypatch.setenv(name, value)
    return str(server)


def test_a_store_that_loses_commits_is_refused(address, monkeypatch):
    with s3_server(careless=True) as careless:
        monkeypatch.setenv("AWS_ENDPOINT_URL", careless)
        with pytest.raises(UnsafeStore, match=r"lost \d+ of \d+ commits made at once"):
            Library.create("s3://films/careless", SETTINGS, fingerprint())
    monkeypatch.setenv("AWS_ENDPOINT_URL", address)
    assert not Library.exists("s3://films/careless")
