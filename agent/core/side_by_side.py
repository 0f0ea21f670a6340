"""Calls awaited at once, none of which outlives an error of another; and calls awaited by a plain function."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

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


def run_now(call: Coroutine[Any, Any, A]) -> A:
    """Run a coroutine to its end; where an event loop runs already (in a notebook, say) on a thread of its own.

    An interrupt of the caller cancels it there too, and waits for its end: no further call of a model begins.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(call)
    begun: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[A]]] = Future()

    async def run() -> A:
        task = asyncio.ensure_future(call)
        begun.set_result((asyncio.get_running_loop(), task))
        return await task

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(asyncio.run, run())
        try:
            return running.result()
        except BaseException:
            if not running.done():  # the caller was interrupted, the call was not
                loop, task = begun.result()
                loop.call_soon_threadsafe(task.cancel)
            raise
