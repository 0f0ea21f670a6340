"""An event loop in a thread of its own, where models are opened, asked, and closed with it.

Models belong to the loop that opened them. Here any thread may ask them, and so may another loop; what computes there
between its calls (reading frames, comparing vectors) holds up none of the requests under way.

with ModelLoop() as loop:
    model = loop.open(open_model(role))
    exchange = loop.run(model.ask(request))
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from threading import Lock, Thread
from types import TracebackType
from typing import Any, Self, TypeVar

T = TypeVar("T")


class ModelLoop:
    """A running event loop with what was opened in it, until its block ends; then calls that go on are cancelled."""

    def __init__(self, name: str = "models") -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._opened = AsyncExitStack()
        self._lock = Lock()
        self._is_closed = False

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._is_closed = True
        try:
            asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def open(self, opening: AbstractAsyncContextManager[T]) -> T:
        """Open something in the loop, which is closed with it; raises what opening it raises."""
        return self.run(self._opened.enter_async_context(opening))

    def submit(self, call: Coroutine[Any, Any, T]) -> Future[T]:
        """Begin a call; its future raises CancelledError once the loop has ended."""
        with self._lock:  # a call that comes after the end would be waited for, and nothing would run it
            if not self._is_closed:
                return asyncio.run_coroutine_threadsafe(call, self._loop)
        call.close()
        raise CancelledError

    def run(self, call: Coroutine[Any, Any, T]) -> T:
        """Wait for a call; an interrupt of the caller cancels it."""
        future = self.submit(call)
        try:
            return future.result()
        finally:
            future.cancel()

    async def reply(self, call: Coroutine[Any, Any, T]) -> T:
        """Await a call from another event loop."""
        outcome = await asyncio.wrap_future(self.submit(_outcome(call)))
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    async def _end(self) -> None:
        """Cancel the calls of this loop, wait for all, also for those that take some steps yet, and close the rest."""
        calls = asyncio.all_tasks() - {asyncio.current_task()}
        for call in calls:
            if not call.cancelling():
                call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        await self._opened.aclose()


async def _outcome(call: Coroutine[Any, Any, T]) -> T | BaseException:
    """Return what a call returns or raises: an error that its caller no longer waits for would be logged as a fault."""
    outcomes: Sequence[T | BaseException] = await asyncio.gather(call, return_exceptions=True)
    return outcomes[0]
