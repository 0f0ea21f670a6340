"""Software, cores and memory of the machine, and free space where models and caches go."""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
from importlib.metadata import version
from pathlib import Path

from jobs.doctor import CheckResult
from jobs.model_choice import cache_file

SECTION = "machine"
MIN_FREE_BYTES = 2_000_000_000
"""A model of the default space takes 1.5 GB."""
CGROUP = Path("/sys/fs/cgroup")


def check_machine() -> list[CheckResult]:
    """Check versions, cores, memory and disks."""
    python = f"Python {platform.python_version()}, {platform.platform()}"
    return [
        CheckResult(SECTION, "kinodex", "ok", f"{version('kinodex')}, {python}"),
        CheckResult(SECTION, "cores", "ok", _cores()),
        CheckResult(SECTION, "memory", "ok", _memory()),
        *(_check_space(name, folder) for name, folder in _folders().items()),
    ]


def _cores() -> str:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()  # macOS has none
    quota, _, period = _limit("cpu.max").partition(" ")
    bound = f", limited to {int(quota) / int(period):g}" if quota.isdigit() else ""
    return f"{usable} of {os.cpu_count()} usable{bound}"


def _memory() -> str:
    page = os.sysconf("SC_PAGE_SIZE")
    total = os.sysconf("SC_PHYS_PAGES") * page
    free = os.sysconf("SC_AVPHYS_PAGES") * page if "SC_AVPHYS_PAGES" in os.sysconf_names else total  # not on macOS
    meminfo = dict(line.split(":") for line in _text(Path("/proc/meminfo")).splitlines())
    if "MemAvailable" in meminfo:
        free = int(meminfo["MemAvailable"].split()[0]) * 1024
    limit = _limit("memory.max")
    bound = f", limited to {gigabytes(int(limit))}" if limit.isdigit() and int(limit) < total else ""
    return f"{gigabytes(total)}, {gigabytes(free)} available{bound}"


def _limit(name: str) -> str:
    """Limit of this container by the control group's file of that name; empty if there is none."""
    return _text(CGROUP / name).strip()


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def _folders() -> dict[str, Path]:
    from huggingface_hub.constants import HF_HUB_CACHE

    return {
        "room for models": Path(HF_HUB_CACHE),
        "room for replies": cache_file().parent,
        "room for fetched videos": Path(tempfile.gettempdir()),
    }


def _check_space(name: str, folder: Path) -> CheckResult:
    """Check the free space where a folder is, or will be."""
    existing = next(each for each in (folder, *folder.parents) if each.exists())
    free_bytes = shutil.disk_usage(existing).free
    message = f"{gigabytes(free_bytes)} free at {folder}"
    if not os.access(existing, os.W_OK):
        return CheckResult(SECTION, name, "broken", f"{folder} cannot be written", _remedy(name))
    if free_bytes < MIN_FREE_BYTES:
        return CheckResult(SECTION, name, "broken", message, f"free some; {_remedy(name)}")
    return CheckResult(SECTION, name, "ok", message)


def _remedy(name: str) -> str:
    variable = {"room for models": "HF_HOME", "room for replies": "KINODEX_CACHE"}.get(name, "TMPDIR")
    return f"set {variable} to a folder with room"


def gigabytes(count: int) -> str:
    """Write a number of bytes in GB."""
    return f"{count / 1e9:,.1f} GB"
