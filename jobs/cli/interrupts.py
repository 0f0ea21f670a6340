"""Ctrl-C, heeded even where Python drops it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from jobs.console.ingest_progress import Watch
from jobs.ingest.outcomes import Progress


@contextmanager
def interruptible(watch: Watch) -> Iterator[Watch]:
    """A `watch` that raises a KeyboardInterrupt which was lost, for runs in the main thread.

    Python drops any exception that is raised in a finalizer or in a callback, as those of imports are, and an ingest
    imports much while it begins: one Ctrl-C of a few dozen went unheard there.
    """
    pressed = False

    def press(number: int, frame: FrameType | None) -> None:
        nonlocal pressed
        pressed = True
        raise KeyboardInterrupt

    def watched(progress: Progress) -> None:
        if pressed:
            raise KeyboardInterrupt
        watch(progress)

    before = signal.signal(signal.SIGINT, press)
    try:
        yield watched
    finally:
        signal.signal(signal.SIGINT, before)
