"""Calls awaited at once, none of which outlives an error of another."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine, Sequence
from typing import TypeVar

from agent.core.work_clock import counted

A = TypeVar("A")
B = TypeVar("B")


async def gather_pair(first: Awaitable[A], second: Awaitable[B]) -> tuple[A, B]:
    """Await two calls at once; if one fails, the other is cancelled before the error goes on."""
    tasks = asyncio.ensure_future(counted(first)), asyncio.ensure_future(counted(second))
    await gather_all(tasks)
    return tasks[0].result(), tasks[1].result()


async def gather_all(calls: Sequence[Awaitable[A]]) -> list[A]:
    """Await calls at once, results in order; if one fails, the others are cancelled before its error goes on."""
    tasks = [asyncio.ensure_future(counted(call)) for call in calls]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        for call in calls:  # one that was cancelled before it began would warn that it was never awaited
            if isinstance(call, Coroutine):
                call.close()
