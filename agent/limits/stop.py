"""A signal that ends one question early, from any thread.

A stop is a budget that is spent at once: calls in flight are cut, no other begins, and the answer is the best so far.
One last request for it may take `GRACE_S`; a second stop, or one `at_once`, cuts that too.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

GRACE_S = 8.0
"""Seconds after a stop that are left for one last request: most replies come in less."""
STOPPED = "stopped"


class StopSignal:
    """Ends the question that it was passed to; without a call of `stop` it does nothing."""

    def __init__(self, grace_s: float = GRACE_S) -> None:
        self.grace_s = grace_s
        self._lock = threading.Lock()
        self._reason = STOPPED
        self._last_at: float | None = None
        self._looks: set[Callable[[], None]] = set()

    def stop(self, reason: str = STOPPED, *, at_once: bool = False) -> None:
        """End the question; `reason` becomes the answer's. The second call cuts the last request, as `at_once` does."""
        with self._lock:
            if self._last_at is None:
                self._reason = reason
                self._last_at = time.monotonic() + self.grace_s
            else:
                at_once = True
            if at_once:
                self._last_at = time.monotonic()
            for look in self._looks:  # their event loops run: who leaves takes its look away under this lock
                look()

    @property
    def stopped(self) -> bool:
        return self._last_at is not None

    def over(self, *, final: bool = False) -> str | None:
        """Return the reason why no call may begin, if none may; a `final` one may until the grace is over."""
        left_s = self.seconds_left(final=final)
        return self._reason if left_s is not None and left_s <= 0 else None

    def seconds_left(self, *, final: bool) -> float | None:
        """Seconds until a call is cut: none left after a stop, or the rest of the grace; None while nothing is."""
        last_at = self._last_at
        if last_at is None:
            return None
        return last_at - time.monotonic() if final else 0.0

    @asynccontextmanager
    async def limit(self, *, final: bool) -> AsyncIterator[asyncio.Timeout]:
        """End the block by a timeout when its call is cut."""
        loop = asyncio.get_running_loop()
        is_open = True

        def cut() -> None:
            left_s = self.seconds_left(final=final)
            if is_open and left_s is not None and not limit.expired():
                limit.reschedule(loop.time() + max(left_s, 0.0))

        def look() -> None:
            loop.call_soon_threadsafe(cut)

        async with asyncio.timeout(None) as limit:
            with self._lock:
                self._looks.add(look)
            try:
                cut()
                yield limit
            finally:
                is_open = False
                with self._lock:
                    self._looks.discard(look)
