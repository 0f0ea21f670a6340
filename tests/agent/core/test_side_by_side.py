"""Calls at once: results in order, and nothing that outlives an error."""

from __future__ import annotations

import asyncio
import inspect
import os
import signal

import pytest

from agent.core.side_by_side import gather_all, gather_pair, run_now


async def after(turns: int, value: str) -> str:
    for _ in range(turns):
        await asyncio.sleep(0)
    return value


def test_results_come_in_the_order_of_the_calls() -> None:
    async def run() -> tuple[list[str], tuple[str, str], list[str]]:
        pair = await gather_pair(after(2, "c"), after(0, "d"))
        return await gather_all([after(3, "a"), after(0, "b")]), pair, await gather_all([])

    assert asyncio.run(run()) == (["a", "b"], ("c", "d"), [])


def test_an_error_cancels_the_others_before_it_goes_on() -> None:
    ended: list[str] = []

    async def waits() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")

    async def fails() -> None:
        await asyncio.sleep(0)
        raise KeyError("gone")

    with pytest.raises(KeyError):
        asyncio.run(gather_pair(waits(), fails()))
    assert ended == ["cancelled"]


@pytest.mark.filterwarnings("error")
def test_calls_that_are_cancelled_before_they_begin_warn_of_nothing() -> None:
    calls = [after(1, "a"), after(1, "b")]

    async def run() -> None:
        together = asyncio.ensure_future(gather_all(calls))
        asyncio.get_running_loop().call_soon(together.cancel)  # after it began, before its calls do
        await together

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(run())
    assert [inspect.getcoroutinestate(call) for call in calls] == [inspect.CORO_CLOSED] * 2


def test_an_interrupt_where_a_loop_runs_already_cancels_the_call_and_waits_for_its_end() -> None:
    """A notebook's stop button: the interrupt reaches the thread that waits, not the one that asks."""
    ends = list[str]()

    async def question() -> None:
        try:
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.sleep(60)
            ends.append("went on")
        except asyncio.CancelledError:
            ends.append("cancelled")
            raise

    async def cell() -> None:
        with pytest.raises(KeyboardInterrupt):
            run_now(question())

    loop = asyncio.new_event_loop()  # as in a kernel the interrupt goes to the code that runs
    try:
        loop.run_until_complete(cell())
    finally:
        loop.close()
    assert ends == ["cancelled"]
