"""Limits of a child process that decodes: it ends with its parent, and before it holds more memory than it may."""

from __future__ import annotations

import fcntl
import os
import resource
import select
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

OUT_OF_MEMORY = 77
"""Exit status of a child that takes more memory than allowed."""
MEMORY_CHECK_S = 0.05


def end_with_parent() -> None:
    """Leave Ctrl-C to the parent, and have the kernel end this process when the pipe at its standard input closes.

    Even while native code hangs in it. Not PR_SET_PDEATHSIG, which goes by the parent's thread: the one that started
    this process may end long before the parent does.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it reaches the whole group; the parent decides what to do
    with suppress(OSError):  # where memory runs out, this process is the one to lose
        Path("/proc/self/oom_score_adj").write_text("500")
    pipe = sys.stdin.fileno()
    fcntl.fcntl(pipe, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(pipe, fcntl.F_SETFL, fcntl.fcntl(pipe, fcntl.F_GETFL) | os.O_ASYNC)
    closed = select.poll()
    closed.register(pipe)
    if closed.poll(0):
        raise SystemExit("the parent is gone")


def watch_memory(limit_bytes: int) -> None:
    """End this process, with status `OUT_OF_MEMORY`, once it holds more than `limit_bytes`; a thread looks.

    A resource limit would not do: FFmpeg takes an allocation that fails for damage in the stream.
    """
    threading.Thread(target=_watch, args=(limit_bytes,), daemon=True).start()


def _watch(limit_bytes: int) -> None:
    statm, page_bytes = Path("/proc/self/statm"), resource.getpagesize()
    while True:
        if int(statm.read_text().split()[1]) * page_bytes > limit_bytes:
            os._exit(OUT_OF_MEMORY)
        time.sleep(MEMORY_CHECK_S)
