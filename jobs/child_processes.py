"""Start child processes that leave Ctrl-C to their parent, and that import nothing from the working directory."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SAFE_PATH = "PYTHONSAFEPATH"


@contextmanager
def without_interrupts() -> Iterator[None]:
    """Block SIGINT in this thread: processes that start in this block inherit that, and their parent ends them.

    Ctrl-C goes to all processes of a terminal, and one that is still importing would print a traceback.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def isolated_children() -> Iterator[None]:
    """Let no Python process that starts in this block import from the working directory, nor any that it starts.

    `python -c` and `python -m` put that directory first, those of multiprocessing too: in a folder of downloads a file
    `av.py` or `pickle.py` would run.
    """
    before = os.environ.get(SAFE_PATH)
    os.environ[SAFE_PATH] = "1"
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(SAFE_PATH, None)
        else:
            os.environ[SAFE_PATH] = before


def child_environment() -> dict[str, str]:
    """Copy this process's environment, with its import path, for a child that starts with `-P`."""
    path = os.pathsep.join([str(Path(__file__).parents[2]), *filter(None, sys.path)])
    return os.environ | {"PYTHONPATH": path}
