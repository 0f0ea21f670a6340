"""Ray without a cluster, and a cluster that does not answer."""

from __future__ import annotations

import pytest

from kinodex.doctor.machine import check_ray
from tests.support.runs.check_results import states

pytestmark = pytest.mark.ray


def test_a_cluster_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    assert states(check_ray(None)) == {"cluster": "missing"}
    assert states(check_ray("127.0.0.1:1")) == {"cluster": "broken"}
