"""Folders that are made once: for a whole run of the tests, whatever the number of its processes, or for all runs."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

KEPT = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "kinodex-tests"
"""Folders that outlast a run, since they take long to download."""


def made_once(tmp_path_factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """Return a folder that `make` has filled; the first process that asks makes it, the others wait for that."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder, unfinished = shared / name, shared / f"{name}.unfinished"
    with (shared / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            make(unfinished)
            unfinished.rename(folder)
    return folder


def made_for_all_runs(folder: Path, make: Callable[[Path], object]) -> Path:
    """Return a folder that `make` has filled where it stands, now or in an earlier run.

    A mark in it says that it is finished: what was interrupted, or raised, is begun again.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f".{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        finished = folder / ".done"
        if not finished.exists():
            shutil.rmtree(folder, ignore_errors=True)
            make(folder)
            finished.touch()
    return folder
