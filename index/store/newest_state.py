"""The newest state of a table, found on a local disk without listing all states.

Lance lists them at each look: 0.4 ms for a thousand, and a run that commits every second leaves 3,600 an hour. But
states are numbered without gaps, each is a file with a name of its number (Lance's format, "V2 manifest naming"), and
it is there at once and whole (it is renamed): so those after the state that is known are looked for one by one, in 5
microseconds each. Where the file of the known state does not have such a name, Lance is left to list them.
"""

from __future__ import annotations

import os
from contextlib import suppress
from copy import copy
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lance import LanceDataset

MOST_STEPS = 200
"""Listing is quicker than more steps than this."""
Mark = tuple[int, int]


def state_mark(folder: str | None, version: int) -> Mark | None:
    """Return the time of change and size of a state's file on a local disk: a table made again has others there."""
    return None if folder is None else _look(folder, version)


def is_newest(folder: str | None, version: int, mark: Mark | None) -> bool:
    """Return True if a state, known by its mark, is still there and none follows.

    It looks at the disk only twice, since a search opens 20 tables.
    """
    if folder is None or mark is None or state_mark(folder, version) != mark:
        return False
    return _look(folder, version + 1) is None


def newest_state(known: LanceDataset, folder: str | None, mark: Mark | None) -> LanceDataset:
    """Open the newest state of a table of which one is known, by its files in `folder` and its `mark` if these hold."""
    if folder is None or mark is None or state_mark(folder, known.version) != mark:
        return _listed(known)
    version = newest_version(folder, known.version)
    if version == known.version:
        return copy(known)
    if version is not None:
        with suppress(OSError, ValueError):  # it was deleted meanwhile
            return known.checkout_version(version)
    return _listed(known)


def _listed(known: LanceDataset) -> LanceDataset:
    newest = copy(known)
    look: Any = newest  # the method has no types
    look.checkout_latest()
    return newest


def newest_version(folder: str, known: int) -> int | None:
    """Count up from the number of a known state to the newest; None if they have to be listed."""
    if _look(folder, known) is None:
        return None
    for version in range(known, known + MOST_STEPS):
        if _look(folder, version + 1) is None:
            return version
    return None


def is_another(known: LanceDataset, newest: LanceDataset, folder: str | None, mark: Mark | None) -> bool:
    """Return True if the newest state is of a table that was made after the known one's, with its `mark`, was
    deleted.
    """
    if mark is not None and state_mark(folder, known.version) not in (mark, None):
        return True
    if newest.version != known.version:
        return newest.version < known.version
    return bool(newest.get_version()["timestamp"] != known.get_version()["timestamp"])


def _look(folder: str, version: int) -> Mark | None:
    """Return the mark of a state's file; None if it is not there."""
    try:
        stat = os.stat(f"{folder}/_versions/{2**64 - 1 - version:020}.manifest")  # noqa: PTH116  # quicker than a Path
    except FileNotFoundError:
        return None
    return stat.st_mtime_ns, stat.st_size
