"""Processes, identified by more than their number, which may be given to another process later.

psutil is not used for that: its `create_time` is in the clock's seconds, so that it changes when the clock is set, and
it knows neither the start of the machine nor the container that a number belongs to.
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path

GONE_STATES = ("Z", "X")
"""Ended, though its parent has not waited for it."""


@dataclass(frozen=True, slots=True)
class Process:
    """A process: its number identifies it only between two starts of a machine, in one container."""

    host: str
    boot: str
    """Start of the machine, and the container; empty where the system does not provide them."""
    pid: int
    start: int
    """When it began, in ticks since the machine was started; 0 where the system does not provide it."""


def this_process() -> Process:
    """Identify the current process."""
    return Process(socket.gethostname(), _boot(), os.getpid(), _start(os.getpid()) or 0)


def is_known(process: Process) -> bool:
    """Return True if it is a process of this machine and container, so that `is_running` is reliable."""
    return bool(process.boot) and (process.host, process.boot) == (socket.gethostname(), _boot())


def is_running(process: Process) -> bool:
    """Return True if this very process still runs."""
    return process.start > 0 and _start(process.pid) == process.start


def _boot() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def _start(pid: int) -> int | None:
    """Read the start time of a process (proc_pid_stat(5), fields 3 and 22); None if there is no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    state, *fields = stat.rpartition(")")[2].split()
    return None if state in GONE_STATES else int(fields[18])
