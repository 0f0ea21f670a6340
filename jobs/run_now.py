"""Run a coroutine in a plain function, whether or not an event loop runs already, as it does in a notebook."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
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
    calls = list[tuple[asyncio.AbstractEventLoop, asyncio.Task[A]]]()
    interrupted = threading.Event()

    async def run() -> A:
        task = asyncio.ensure_future(call)
        calls.append((asyncio.get_running_loop(), task))
        if interrupted.is_set():
            task.cancel()
        return await task

    with ThreadPoolExecutor(1) as pool:
        pool.submit(int).result()  # a thread whose start is interrupted is one that nobody waits for
        try:
            return pool.submit(asyncio.run, run()).result()
        except BaseException:
            interrupted.set()
            for loop, task in calls:
                if not task.done():  # the caller was interrupted, the call was not
                    loop.call_soon_threadsafe(task.cancel)
            raise
