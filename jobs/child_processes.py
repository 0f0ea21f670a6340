"""Start child processes that leave Ctrl-C to their parent."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_interrupts() -> Iterator[None]:
    """Block SIGINT in this thread: processes that start in this block inherit that, and never get one.

    Ctrl-C goes to all processes of a terminal, and one that is still importing would print a traceback. Their parent
    ends them. An interrupt of this process waits until the block ends.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
