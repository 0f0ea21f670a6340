"""Memory that this machine, or this container, has left."""

from __future__ import annotations

import os
from pathlib import Path

MEMINFO, CGROUP = Path("/proc/meminfo"), Path("/sys/fs/cgroup")
UNKNOWN_SHARE = 0.5
"""Of all memory, what is taken for free where the system does not say, as on macOS."""
LANCE_CACHE_BYTES = 6 << 30
"""What Lance itself takes for its cache of indexes, at most."""


def index_cache_bytes(free_bytes: int) -> int:
    """Compute how much of the indexes is kept in memory: half of what is free, and no less than Lance would."""
    return max(LANCE_CACHE_BYTES, free_bytes // 2)


def free_memory_bytes(meminfo: Path = MEMINFO, cgroup: Path = CGROUP) -> int:
    """Read how much memory is available, and no more than programs leave of this container's limit."""
    facts = dict(line.split(":", 1) for line in _text(meminfo).splitlines() if ":" in line)
    if "MemAvailable" in facts:
        free = int(facts["MemAvailable"].split()[0]) * 1024
    else:
        free = int(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") * UNKNOWN_SHARE)
    limit = _text(cgroup / "memory.max").strip()
    used = dict(line.split() for line in _text(cgroup / "memory.stat").splitlines())
    if not limit.isdigit() or "anon" not in used:  # "max"
        return free
    return min(free, max(0, int(limit) - int(used["anon"])))


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
