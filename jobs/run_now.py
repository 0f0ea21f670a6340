"""Run a coroutine in a plain function, whether or not an event loop runs already, as it does in a notebook."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

A = TypeVar("A")


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
