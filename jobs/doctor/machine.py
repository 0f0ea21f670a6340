"""The machine itself: software, cores, memory, and room where models and caches go."""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
from importlib.metadata import version
from pathlib import Path

from jobs.doctor.finding import Finding
from jobs.model_choice import cache_file

SECTION = "machine"
LEAST_FREE_BYTES = 2_000_000_000
"""A model of the default space takes 1.5 GB."""
CGROUP = Path("/sys/fs/cgroup")


def machine() -> list[Finding]:
    python = f"Python {platform.python_version()}, {platform.platform()}"
    return [
        Finding(SECTION, "kinodex", "ok", f"{version('kinodex')}, {python}"),
        Finding(SECTION, "cores", "ok", _cores()),
        Finding(SECTION, "memory", "ok", _memory()),
        *(_room(name, place) for name, place in _places().items()),
    ]


def _cores() -> str:
    usable = len(os.sched_getaffinity(0))
    quota, _, period = _limit("cpu.max").partition(" ")
    bound = f", held to {int(quota) / int(period):g} by a limit" if quota.isdigit() else ""
    return f"{usable} of {os.cpu_count()} usable{bound}"


def _memory() -> str:
    page = os.sysconf("SC_PAGE_SIZE")
    total, free = os.sysconf("SC_PHYS_PAGES") * page, os.sysconf("SC_AVPHYS_PAGES") * page
    told = dict(line.split(":") for line in _text(Path("/proc/meminfo")).splitlines())
    if "MemAvailable" in told:
        free = int(told["MemAvailable"].split()[0]) * 1024
    limit = _limit("memory.max")
    bound = f", held to {gigabytes(int(limit))} by a limit" if limit.isdigit() and int(limit) < total else ""
    return f"{gigabytes(total)}, {gigabytes(free)} available{bound}"


def _limit(name: str) -> str:
    """What a container is held to, as the control group's file of that name says; empty if nothing does."""
    return _text(CGROUP / name).strip()


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def _places() -> dict[str, Path]:
    from huggingface_hub.constants import HF_HUB_CACHE

    return {
        "room for models": Path(HF_HUB_CACHE),
        "room for replies": cache_file().parent,
        "room for fetched videos": Path(tempfile.gettempdir()),
    }


def _room(name: str, place: Path) -> Finding:
    """Free room where a folder is, or will be."""
    there = next(folder for folder in (place, *place.parents) if folder.exists())
    free = shutil.disk_usage(there).free
    said = f"{gigabytes(free)} free at {place}"
    if not os.access(there, os.W_OK):
        return Finding(SECTION, name, "broken", f"{place} cannot be written", _elsewhere(name))
    if free < LEAST_FREE_BYTES:
        return Finding(SECTION, name, "broken", said, f"free some; {_elsewhere(name)}")
    return Finding(SECTION, name, "ok", said)


def _elsewhere(name: str) -> str:
    variable = {"room for models": "HF_HOME", "room for replies": "KINODEX_CACHE"}.get(name, "TMPDIR")
    return f"set {variable} to a folder with room"


def gigabytes(count: int) -> str:
    return f"{count / 1e9:,.1f} GB"
