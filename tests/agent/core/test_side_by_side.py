"""Calls at once: results in order, and nothing that outlives an error."""

from __future__ import annotations

import asyncio
import inspect

import pytest

from kinodex.agent.limits import gather_all, gather_pair


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
