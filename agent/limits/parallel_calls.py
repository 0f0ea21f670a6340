"""Calls awaited at once, none of which outlives an error of another."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine, Sequence
from typing import TypeVar

from kinodex.agent.limits.work_clock import counted

A = TypeVar("A")


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
