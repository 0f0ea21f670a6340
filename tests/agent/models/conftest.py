"""Waits of clients, made short."""

from __future__ import annotations

import pytest

from kinodex.agent.models import endpoint


@pytest.fixture
def quick_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let an endpoint be tried again at once, where how often it is tried counts, and not how long it takes."""
    monkeypatch.setattr(endpoint, "FIRST_WAIT_S", 0.01)
    monkeypatch.setattr(endpoint, "JITTER_S", 0.01)
