"""Files that kinodex keeps for a user, within a size and an age: replies of models, exported towers, traces of servers.

A cache of replies is looked at when it is opened, the traces when a server starts, and all by `kinodex clean`. The
oldest go first. What is deleted costs money or time to make again, and nothing else.
"""

from __future__ import annotations

import math
import os
import shutil
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from kinodex.agent.models.response_cache import DAY_S, ResponseCache
from kinodex.index.spaces.tower_cache import cache_folder
from kinodex.jobs.errors import UsageError

KEEP_GB, KEEP_DAYS = "KINODEX_KEEP_GB", "KINODEX_KEEP_DAYS"
USUAL = {KEEP_GB: 2.0, KEEP_DAYS: 365.0}


@dataclass(frozen=True, slots=True)
class KeepLimits:
    """Limits of each kind of file: bytes in all, and the age in days of each."""

    bytes: float
    days: float


@dataclass(frozen=True, slots=True)
class KeptFiles:
    """Numbers of things in a place and their bytes, the age of the oldest, and what of it is beyond the limits."""

    kind: str
    place: str
    count: int
    bytes: int
    oldest_days: float | None
    beyond: int = 0
    beyond_bytes: int = 0


def keep_limits(gb: float | None = None, days: float | None = None) -> KeepLimits:
    """Return the limits that are given, else those of KINODEX_KEEP_GB and KINODEX_KEEP_DAYS, else the usual ones."""
    return KeepLimits((_variable(KEEP_GB) if gb is None else gb) * 1e9, _variable(KEEP_DAYS) if days is None else days)


def _variable(name: str) -> float:
    text = os.environ.get(name) or str(USUAL[name])
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not value >= 0:
        raise UsageError(f"got {name}={text}; give a number from 0 on, as {USUAL[name]:g}")
    return value


def keep_replies(path: Path, limits: KeepLimits, *, free: bool = True) -> KeptFiles:
    """Look at the replies in a file, and delete those beyond the limits if they are to be freed."""
    if not path.is_file():
        return KeptFiles("replies", str(path), 0, 0, None)
    with ResponseCache(path) as cache:
        held = cache.held()
        beyond = cache.beyond(limits.bytes, limits.days)
        if free and beyond:
            cache.forget_first(beyond)
            cache.shrink()
    freed = round(held.bytes * beyond / max(held.replies, 1))
    return KeptFiles("replies", str(path), held.replies, held.bytes, held.oldest_days, beyond, freed)


def keep_towers(limits: KeepLimits, *, free: bool = True) -> KeptFiles:
    """Return the same of the exported towers of spaces in the user's cache."""
    root = cache_folder("any").parent
    return _keep("towers", root, [[folder] for folder in sorted(root.glob("*/*")) if folder.is_dir()], limits, free)


def keep_traces(root: Path, limits: KeepLimits, *, free: bool = True) -> KeptFiles:
    """Return the same of the traces of questions below a folder, each with its facts."""
    traces = [[path, path.with_suffix(".jsonl")] for path in sorted(root.glob("*/q*.json"))]
    return _keep("traces", root, traces, limits, free)


def _keep(kind: str, root: Path, things: Iterable[Sequence[Path]], limits: KeepLimits, free: bool) -> KeptFiles:
    """Look at things of several files; those beyond the limits go whole."""
    known = sorted(((*_size_and_age(paths), paths) for paths in things), key=lambda each: each[1])
    total, beyond = 0, list[tuple[int, float, Sequence[Path]]]()
    for size, age_s, paths in known:
        total += size
        if total > limits.bytes or age_s > limits.days * DAY_S:
            beyond.append((size, age_s, paths))
    for _, _, paths in beyond if free else ():
        for path in paths:
            with suppress(OSError):  # another process takes it away, or it is another user's
                shutil.rmtree(path) if path.is_dir() else path.unlink()
    oldest = known[-1][1] / DAY_S if known else None
    return KeptFiles(kind, str(root), len(known), total, oldest, len(beyond), sum(size for size, _, _ in beyond))


def _size_and_age(paths: Sequence[Path]) -> tuple[int, float]:
    """Bytes of all files, and the seconds since the last of them was written; (0, 0.0) for what is gone."""
    files = [file for path in paths for file in (path.rglob("*") if path.is_dir() else [path])]
    states = []
    for file in files:
        with suppress(OSError):
            states.append(file.stat())
    newest = max((state.st_mtime for state in states), default=time.time())
    return sum(state.st_size for state in states), max(time.time() - newest, 0.0)
