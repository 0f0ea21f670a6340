"""Seconds of one question's own work: what it computes, and its calls to models while they are served.

Many questions share an event loop, the slots of an endpoint and stored replies. While a question waits for another
one (`waiting`), or the loop works for others, its clock stands still, so that its seconds do not depend on how many
are asked at once. What a server does with several requests is the server's: it cannot be distinguished from work.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, Generic, TypeVar

T = TypeVar("T")
LOOK_S = 0.01
"""The least time between two looks at a clock that may stand still."""


class WorkClock:
    """A clock that runs while at least one part of the work is done; any thread may start and stop parts."""

    def __init__(self, now: Callable[[], float] = time.perf_counter) -> None:
        self._now = now
        self._lock = threading.RLock()
        self._parts = 0
        self._since = 0.0
        self._worked_s = 0.0
        self._stopped_at = now()

    @property
    def idle_s(self) -> float:
        """Seconds since the last part of the work ended; 0 while one is done."""
        with self._lock:
            return 0.0 if self._parts else self._now() - self._stopped_at

    @property
    def seconds(self) -> float:
        with self._lock:
            return self._worked_s + (self._now() - self._since if self._parts else 0.0)

    @contextmanager
    def working(self) -> Iterator[None]:
        self._start()
        try:
            yield
        finally:
            self._stop()

    @contextmanager
    def serving(self) -> Iterator[Service]:
        """Count the time of a call of a model, except where it is `waiting`."""
        service = Service(self)
        before = _service.set(service)
        self._start()
        try:
            yield service
        finally:
            _service.reset(before)
            service.end()

    async def count(self, call: Awaitable[T]) -> T:
        """Await a call, and count the time that it computes; so do `counted` calls in tasks that it starts."""
        before = _clock.set(self)
        try:
            return await _Steps(self, call)
        finally:
            _clock.reset(before)

    def _start(self) -> None:
        with self._lock:
            self._since = self._since if self._parts else self._now()
            self._parts += 1

    def _stop(self) -> None:
        with self._lock:
            self._parts -= 1
            if not self._parts:
                self._stopped_at = self._now()
                self._worked_s += self._stopped_at - self._since


class Service:
    """One call of a model; after its end nothing changes the clock, though its request may still be given up."""

    def __init__(self, clock: WorkClock) -> None:
        self.clock = clock
        self.waited_s = 0.0
        self._waits = 0
        self._since = 0.0
        self._ended = False

    def pause(self) -> None:
        with self.clock._lock:
            if self._waits == 0 and not self._ended:
                self._since = self.clock._now()
                self.clock._stop()
            self._waits += 1

    def resume(self) -> None:
        with self.clock._lock:
            self._waits -= 1
            if self._waits == 0 and not self._ended:
                self.waited_s += self.clock._now() - self._since
                self.clock._start()

    def end(self) -> None:
        with self.clock._lock:
            self._ended = True
            if self._waits:
                self.waited_s += self.clock._now() - self._since
            else:
                self.clock._stop()


_clock: ContextVar[WorkClock | None] = ContextVar("clock", default=None)
_service: ContextVar[Service | None] = ContextVar("service", default=None)


@contextmanager
def waiting() -> Iterator[None]:
    """Leave the time of the block out of the work of the question whose call this is, if it is one."""
    service = _service.get()
    if service is None:
        yield
        return
    service.pause()
    try:
        yield
    finally:
        service.resume()


@asynccontextmanager
async def held(lock: asyncio.Lock | asyncio.Semaphore) -> AsyncIterator[None]:
    """Hold a lock or a slot; `waiting` until it is free."""
    with waiting():
        await lock.acquire()
    try:
        yield
    finally:
        lock.release()


@asynccontextmanager
async def time_limit(seconds_left: Callable[[], float | None]) -> AsyncIterator[asyncio.Timeout]:
    """End the block by a timeout when no seconds are left (None: without limit); they may stand still meanwhile."""
    loop = asyncio.get_running_loop()
    looks: list[asyncio.TimerHandle] = []

    def look() -> None:
        left_s = seconds_left()
        if left_s is not None and left_s <= 0:
            limit.reschedule(loop.time())
        elif left_s is not None:
            looks[:] = [loop.call_later(max(left_s, LOOK_S), look)]

    async with asyncio.timeout(None) as limit:
        look()
        try:
            yield limit
        finally:
            for each in looks:
                each.cancel()


async def counted(call: Awaitable[T]) -> T:
    """Await a call in a task of its own: the time that it computes is that of the question which started the task."""
    clock = _clock.get()
    return await (call if clock is None else _Steps(clock, call))


class _Steps(Generic[T]):
    """An awaitable whose steps, from one wait of the event loop to the next, are counted."""

    def __init__(self, clock: WorkClock, call: Awaitable[T]) -> None:
        self._clock, self._call = clock, call

    def __await__(self) -> Generator[Any, Any, T]:
        steps: Any = self._call.__await__()
        advance: Callable[[], Any] = partial(next, steps)
        while True:
            try:
                with self._clock.working():
                    awaited = advance()
            except StopIteration as end:
                result: T = end.value
                return result
            try:
                advance = partial(steps.send, (yield awaited))
            except BaseException as error:  # a cancellation, say: it is the inner call's to handle
                advance = partial(steps.throw, error)
