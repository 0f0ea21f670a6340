"""A question under way, as its readers see it: every change, the end, and nothing after it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from kinodex.agent.answer import Answer
from kinodex.agent.errors import ModelUnreachable
from kinodex.agent.limits import Ledger
from kinodex.agent.protocol import Question
from kinodex.web.questions import AskRequest, Running

ANSWER = Answer("answered", "red", None, (), 1, Ledger())


def begun() -> Running:
    return Running("q1", AskRequest(0, Question("What?")), datetime.now(UTC))


async def read(running: Running, since: int = 0) -> list[int]:
    return [version async for version in running.changes(since) if version is not None]


def test_readers_wait_for_changes_until_the_end() -> None:
    running = begun()

    async def run() -> list[int]:
        reader = asyncio.create_task(read(running))
        for at in range(3):
            running.add({"event": "Decided", "round": at})
            await asyncio.sleep(0)
        running.end(ANSWER)
        return await reader

    versions = asyncio.run(run())
    assert versions == sorted(set(versions)) and versions[-1] == running.version == 4
    assert (running.state, running.error, running.answer) == ("done", None, ANSWER)
    assert asyncio.run(read(running, 3)) == [4] and asyncio.run(read(running, 4)) == []


def test_an_answer_is_waited_for_and_an_error_raised() -> None:
    running, failed = begun(), begun()
    running.end(ANSWER)
    assert asyncio.run(running.finished()) is ANSWER
    failed.end(ModelUnreachable("nobody answers"))
    assert (failed.state, failed.error) == ("failed", "nobody answers")
    with pytest.raises(ModelUnreachable):
        asyncio.run(failed.finished())


def test_a_stop_is_seen_and_comes_too_late_after_the_end() -> None:
    running = begun()
    running.stop("the day is over")
    assert running.state == "stopping" and running.version == 1
    assert running.signal.over() == "the day is over" and running.signal.over(final=True) is None
    running.stop()
    assert running.signal.over(final=True) == "the day is over", "the second one leaves no time"
    running.end(ANSWER)
    version = running.version
    running.stop()
    assert running.version == version, "nothing has changed"


def test_a_reader_that_goes_away_is_forgotten() -> None:
    running = begun()

    async def look() -> None:
        running.add({})
        changes = running.changes()
        assert await anext(changes) == 1
        await changes.aclose()

    asyncio.run(look())
    running.add({})  # would raise if it woke a reader whose loop is closed
    assert running.version == 2
