"""The newest state of a table, found on a local disk without listing all states.

Lance lists them at each look: 0.4 ms for a thousand, and a run that commits every second leaves 3,600 an hour. But
states are numbered without gaps, each is a file with a name of its number (Lance's format, "V2 manifest naming"), and
it is there at once and whole (it is renamed): so those after the state that is known are looked for one by one, in 5
microseconds each. Where the file of the known state does not have such a name, Lance is left to list them.
"""

from __future__ import annotations

from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lance import LanceDataset

MOST_STEPS = 200
"""Listing is quicker than more steps than this."""


def newest_state(known: LanceDataset, folder: Path | None) -> LanceDataset:
    """Open the newest state of a table of which one is known; `folder` is that of the table on a local disk."""
    version = None if folder is None else newest_version(folder, known.version)
    if version == known.version:
        return copy(known)
    if version is None:
        return _listed(known)
    try:
        return known.checkout_version(version)
    except (OSError, ValueError):  # it was deleted meanwhile
        return _listed(known)


def _listed(known: LanceDataset) -> LanceDataset:
    newest = copy(known)
    look: Any = newest  # the method has no types
    look.checkout_latest()
    return newest


def newest_version(folder: Path, known: int) -> int | None:
    """Count up from the number of a known state to the newest; None if they have to be listed."""
    if not _manifest(folder, known).exists():
        return None
    for version in range(known, known + MOST_STEPS):
        if not _manifest(folder, version + 1).exists():
            return version
    return None


def _manifest(folder: Path, version: int) -> Path:
    return folder / "_versions" / f"{2**64 - 1 - version:020}.manifest"
