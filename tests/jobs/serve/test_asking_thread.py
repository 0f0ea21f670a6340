"""The thread of the questions: models of its own loop, calls side by side, an end that waits for nobody for ever."""

from __future__ import annotations

import asyncio
import threading

import pytest

from kinodex.agent.errors import KeyMissing
from kinodex.jobs.models import ModelChoice
from kinodex.web.questions import AskingThread


def test_calls_run_in_one_thread_side_by_side() -> None:
    thread, done, places = AskingThread(ModelChoice()), threading.Event(), list[str]()
    gate = asyncio.Event()

    async def first() -> None:
        places.append(threading.current_thread().name)
        await gate.wait()
        done.set()

    async def second() -> None:
        places.append(threading.current_thread().name)
        gate.set()

    thread.submit(first)
    thread.submit(second)
    assert done.wait(60)
    thread.close()
    assert places == ["questions", "questions"]


def test_a_close_cancels_what_does_not_end() -> None:
    thread, began, ended = AskingThread(ModelChoice()), threading.Event(), threading.Event()

    async def hangs() -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    thread.submit(hangs)
    assert began.wait(60)
    thread.close(patience_s=0.01)
    assert ended.is_set()


def test_models_that_cannot_be_opened_leave_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    before = set(threading.enumerate())
    with pytest.raises(KeyMissing):
        AskingThread(ModelChoice("gpt-4o", cache=False))
    assert set(threading.enumerate()) <= before
