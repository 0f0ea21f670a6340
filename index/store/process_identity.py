"""Whether a process of this machine still runs, even if its number has been given to another since."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path

GONE_STATES = ("Z", "X")
"""Ended, though its parent has not asked after it."""


@dataclass(frozen=True, slots=True)
class Process:
    """A process: its number means something only between two starts of a machine, in one container."""

    host: str
    boot: str
    """Of the machine and container; empty where the system does not tell."""
    pid: int
    start: int
    """When it began, in ticks since the machine was started; 0 where the system does not tell."""


def this_process() -> Process:
    return Process(socket.gethostname(), _boot(), os.getpid(), _start(os.getpid()) or 0)


def is_known(process: Process) -> bool:
    """Whether it is one of this machine, so that `is_running` can tell."""
    return bool(process.boot) and (process.host, process.boot) == (socket.gethostname(), _boot())


def is_running(process: Process) -> bool:
    return process.start > 0 and _start(process.pid) == process.start


def _boot() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def _start(pid: int) -> int | None:
    """When a process began, or None if there is no such process any more. (proc_pid_stat(5), fields 3 and 22.)"""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    state, *fields = stat.rpartition(")")[2].split()
    return None if state in GONE_STATES else int(fields[18])
