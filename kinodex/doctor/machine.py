"""Checks of the machine for `kinodex doctor`: software, cores and memory, and free space where models and caches go."""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
from functools import partial
from importlib.metadata import version
from pathlib import Path

from kinodex.doctor.check_result import CheckResult
from kinodex.jobs.models import cache_file

of_machine = partial(CheckResult, "machine")
MIN_FREE_BYTES = 2_000_000_000
"""A model of the default space takes 1.5 GB."""
CGROUP = Path("/sys/fs/cgroup")
"""Its files hold the limits of this container."""


def check_machine() -> list[CheckResult]:
    from huggingface_hub.constants import HF_HUB_CACHE

    python = f"Python {platform.python_version()}, {platform.platform()}"
    return [
        of_machine("kinodex", "ok", f"{version('kinodex')}, {python}"),
        of_machine("cores", "ok", _cores()),
        of_machine("memory", "ok", _memory()),
        _check_space("room for models", Path(HF_HUB_CACHE), "HF_HOME"),
        _check_space("room for replies", cache_file().parent, "KINODEX_CACHE"),
        _check_space("room for fetched videos", Path(tempfile.gettempdir()), "TMPDIR"),
    ]


def _cores() -> str:
    quota, _, period = _text(CGROUP / "cpu.max").strip().partition(" ")
    bound = f", limited to {int(quota) / int(period):g}" if quota.isdigit() else ""
    return f"{len(os.sched_getaffinity(0))} of {os.cpu_count()} usable{bound}"


def _memory() -> str:
    kilobytes = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    total, free = (int(kilobytes[name].split()[0]) * 1024 for name in ("MemTotal", "MemAvailable"))
    limit = _text(CGROUP / "memory.max").strip()
    bound = f", limited to {gigabytes(int(limit))}" if limit.isdigit() and int(limit) < total else ""
    return f"{gigabytes(total)}, {gigabytes(free)} available{bound}"


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def _check_space(name: str, folder: Path, variable: str) -> CheckResult:
    """Check where a folder is, or will be; the environment's `variable` names another."""
    existing = next(each for each in (folder, *folder.parents) if each.exists())
    free_bytes, todo = shutil.disk_usage(existing).free, f"set {variable} to a folder with room"
    message = f"{gigabytes(free_bytes)} free at {folder}"
    if not os.access(existing, os.W_OK):
        return of_machine(name, "broken", f"{folder} cannot be written", todo)
    if free_bytes < MIN_FREE_BYTES:
        return of_machine(name, "broken", message, f"free some; {todo}")
    return of_machine(name, "ok", message)


def gigabytes(count: int) -> str:
    return f"{count / 1e9:,.1f} GB"
