"""Requests in flight at an endpoint: few at first, more while replies keep their pace, half of them after a time-out.

All roles of a process that are served at one address share its slots, in whatever event loops they are asked: those of
`kinodex eval`, of `serve`, of an extraction and of one question alike. A server that answers one request at a time
gains nothing from more of them: the others wait in its queue until their time is over.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from weakref import WeakValueDictionary

from kinodex.agent.limits.work_clock import waiting

FIRST = 4
"""Requests at once before the first reply."""
FASTER = 1.1
"""The pace at which twice the requests have to be answered, as a multiple of that before: else they wait for each
other."""
LONGEST_SHARE = 1 / 4
"""Of a request's time, what the slowest reply of a round may take for twice the requests to be tried: one that waits
for as many others takes twice as long, and then half of the time is left."""
RESTING_ROUNDS = 8
"""Rounds after which more requests are tried again."""


@dataclass(eq=False, slots=True)
class _Waiter:
    loop: asyncio.AbstractEventLoop
    admitted: asyncio.Future[None]
    at_once: int
    is_in: bool = False


@dataclass(frozen=True, slots=True)
class _Pace:
    """Replies a second with a number of requests at once."""

    width: int
    replies_a_second: float


class Slots:
    """Slots of one address; `width` is the number of requests that go out at once, if the role allows as many."""

    def __init__(self) -> None:
        self.width = FIRST
        self.said_slow = False
        """True once the user was told that replies take too long."""
        self._served: int | None = None
        self._lock = threading.Lock()
        self._waiting: deque[_Waiter] = deque()
        self._in_flight = 0
        self._changed_s = 0.0
        self._round_s = 0.0
        self._replies = 0
        self._longest_s = 0.0
        self._before: _Pace | None = None
        self._resting = 0

    @property
    def is_full(self) -> bool:
        return bool(self._waiting)

    def limit(self, served: int) -> None:
        """Send as many requests at once as the server says that it answers together."""
        with self._lock:
            self._served = served
            self._change(served)
            self._admit()

    @asynccontextmanager
    async def taken(self, at_once: int, limit_s: float) -> AsyncIterator[None]:
        """Hold a slot for a request whose reply has `limit_s`; a role sends `at_once` requests together at most."""
        with waiting():
            await self._take(at_once)
        began_s = time.monotonic()
        try:
            yield
        except BaseException:
            self._release(None, at_once, limit_s)
            raise
        self._release(time.monotonic() - began_s, at_once, limit_s)

    def narrow(self, began_s: float) -> int:
        """Halve the width because a request that began then was too much for the server; return the new width.

        Requests of one round that fail together narrow it once.
        """
        with self._lock:
            if began_s >= self._changed_s:
                self._change(max(1, min(self.width, self._in_flight) // 2))
                self._before, self._resting = None, RESTING_ROUNDS
            return self.width

    async def _take(self, at_once: int) -> None:
        loop = asyncio.get_running_loop()
        waiter = _Waiter(loop, loop.create_future(), at_once)
        with self._lock:
            self._waiting.append(waiter)
            self._admit()
        try:
            await waiter.admitted
        except asyncio.CancelledError:
            with self._lock:
                if waiter.is_in:
                    self._in_flight -= 1
                else:
                    self._waiting.remove(waiter)
                self._admit()
            raise

    def _release(self, seconds: float | None, at_once: int, limit_s: float) -> None:
        """Free a slot; the `seconds` are those that its reply took, None if there was none."""
        with self._lock:
            self._in_flight -= 1
            if seconds is None or not self._waiting:  # of requests that nobody waits for, a pace says nothing
                self._begin_round()
            else:
                self._replies, self._longest_s = self._replies + 1, max(self._longest_s, seconds)
                if self._replies >= min(self.width, at_once):
                    self._end_round(at_once, limit_s)
            self._admit()

    def _admit(self) -> None:
        while self._waiting and self._in_flight < min(self.width, self._waiting[0].at_once):
            waiter = self._waiting.popleft()
            try:
                waiter.loop.call_soon_threadsafe(_wake, waiter.admitted)
            except RuntimeError:  # its loop was closed
                continue
            waiter.is_in = True
            self._in_flight += 1

    def _begin_round(self) -> None:
        self._round_s, self._replies, self._longest_s = time.monotonic(), 0, 0.0

    def _end_round(self, at_once: int, limit_s: float) -> None:
        pace = _Pace(self.width, self._replies / max(time.monotonic() - self._round_s, 1e-9))
        before, self._before = self._before, None
        has_time = self._longest_s <= LONGEST_SHARE * limit_s
        if before is not None and pace.replies_a_second < FASTER * before.replies_a_second:
            self._change(before.width)
            self._resting = RESTING_ROUNDS
        elif self._resting:
            self._resting -= 1
        elif self._served is None and self.width < at_once and has_time:
            self._before = pace
            self._change(min(2 * self.width, at_once))
        self._begin_round()

    def _change(self, width: int) -> None:
        self.width, self._changed_s = width, time.monotonic()
        self._begin_round()


def _wake(admitted: asyncio.Future[None]) -> None:
    if not admitted.done():
        admitted.set_result(None)


_slots: WeakValueDictionary[str, Slots] = WeakValueDictionary()
_making = threading.Lock()


def slots_at(place: str) -> Slots:
    """Return the slots of an address, which are the same as long as anybody holds them."""
    with _making:
        slots = _slots.get(place)
        if slots is None:
            slots = _slots[place] = Slots()
        return slots
