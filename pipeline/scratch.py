"""Temporary folders for fetched videos, deleted even if their process was killed."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FOLDER_PREFIX = "kinodex-"
LOCK_FILE = ".in-use"
"""A file in every folder of `scratch_folder`, locked for as long as the process lives that made it."""


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Make a temporary folder for fetched videos, deleted at the end; first delete those of processes that were killed.

    `flock` and no library: the lock has to be held before another process can see its file, and deleting must not
    create one.
    """
    from fcntl import LOCK_EX, flock  # here, because the query side imports this module and may be where there is none

    _delete_abandoned()
    with tempfile.TemporaryDirectory(prefix=FOLDER_PREFIX) as name, (Path(name) / "new").open("w") as file:
        flock(file, LOCK_EX)
        Path(file.name).rename(Path(name) / LOCK_FILE)  # locked before another process can find it
        yield Path(name)


def _delete_abandoned() -> None:
    from fcntl import LOCK_EX, LOCK_NB, flock

    for path in Path(tempfile.gettempdir()).glob(f"{FOLDER_PREFIX}*/{LOCK_FILE}"):
        try:
            with path.open() as file:
                flock(file, LOCK_EX | LOCK_NB)
                shutil.rmtree(path.parent)
        except OSError:
            continue  # its process is alive, or it is another user's, or another process is deleting it
