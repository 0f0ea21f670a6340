"""A switch of the whole process that several blocks may hold at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class SharedSwitch:
    """A switch of the process that stays on while any block holds it; `turn_on` returns what turns it off."""

    def __init__(self, turn_on: Callable[[], Callable[[], None]]) -> None:
        self.lock = threading.Lock()
        self.holders = 0
        self._turn_on = turn_on
        self._turn_off: Callable[[], None] = lambda: None

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the switch within this block."""
        with self.lock:
            if not self.holders:
                self._turn_off = self._turn_on()
            self.holders += 1
        try:
            yield
        finally:
            with self.lock:
                self.holders -= 1
                if not self.holders:
                    self._turn_off()
