"""Temporary folders for fetched videos, deleted by the next run where their process was killed and could not."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path

PREFIX = "kinodex-"
HELD = ".in-use"
"""A file in every such folder, locked for as long as the process lives that made it."""


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A temporary folder, deleted on leaving; what killed processes left on this machine is deleted first."""
    _sweep()
    with tempfile.TemporaryDirectory(prefix=PREFIX) as name, (Path(name) / "new").open("w") as held:
        flock(held, LOCK_EX)
        Path(held.name).rename(Path(name) / HELD)  # locked before a sweep can see it
        yield Path(name)


def _sweep() -> None:
    for held in Path(tempfile.gettempdir()).glob(f"{PREFIX}*/{HELD}"):
        try:
            with held.open() as file:
                flock(file, LOCK_EX | LOCK_NB)
                shutil.rmtree(held.parent)
        except OSError:
            continue  # its process lives, or is another user's, or is just deleting it
