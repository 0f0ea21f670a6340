"""Switches of the whole process are turned back, however the blocks that need them overlap."""

from __future__ import annotations

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
from huggingface_hub import constants

from index.embedding.hub import quick_hub, silent_root_logger

NOBODY_THERE = "http://127.0.0.1:9"


@pytest.fixture
def silent_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "ENDPOINT", NOBODY_THERE)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)


@pytest.mark.usefixtures("silent_hub")
def test_blocks_that_overlap_leave_the_client_as_it_was() -> None:
    first, second = ExitStack(), ExitStack()
    assert first.enter_context(quick_hub()) is False
    assert second.enter_context(quick_hub()) is False
    first.close()
    assert constants.HF_HUB_OFFLINE  # the second block still needs it
    second.close()
    assert not constants.HF_HUB_OFFLINE


@pytest.mark.usefixtures("silent_hub")
def test_threads_that_ask_at_once_leave_the_client_as_it_was() -> None:
    inside = threading.Barrier(4)

    def ask(_: int) -> bool:
        with quick_hub() as answers:
            inside.wait(60)
            return answers or not constants.HF_HUB_OFFLINE

    with ThreadPoolExecutor(4) as pool:
        assert not any(pool.map(ask, range(4)))
    assert not constants.HF_HUB_OFFLINE


@pytest.mark.usefixtures("silent_hub")
def test_an_error_inside_turns_it_back() -> None:
    with pytest.raises(KeyError), quick_hub():
        raise KeyError
    assert not constants.HF_HUB_OFFLINE


def test_a_user_who_is_offline_stays_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with quick_hub() as answers:
        assert not answers
    assert constants.HF_HUB_OFFLINE


def test_a_hub_that_answers_changes_nothing(monkeypatch: pytest.MonkeyPatch, server_address: str) -> None:
    monkeypatch.setattr(constants, "ENDPOINT", server_address)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    with quick_hub() as answers:
        assert answers
        assert not constants.HF_HUB_OFFLINE


@pytest.fixture
def server_address(tmp_path) -> object:
    from tests.support.model_hub import hub_of

    with hub_of(tmp_path) as address:
        yield address


def test_log_blocks_that_overlap_leave_the_root_logger_as_it_was() -> None:
    root = logging.getLogger()
    before = list(root.handlers), list(root.filters)
    first, second = ExitStack(), ExitStack()
    first.enter_context(silent_root_logger())
    second.enter_context(silent_root_logger())
    first.close()
    assert (root.handlers, root.filters) != before
    second.close()
    assert (root.handlers, root.filters) == before
