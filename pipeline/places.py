"""Places of sources, looked up without reading them: there, gone, or not known; many at a time, in a limit of time.

A place is gone only if its own file system says so: no such file or key, 404 or 410. Where the network, the bucket or
the mounted disk is missing nothing is known of the files in it.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Literal

from kinodex.pipeline.filesystems import filesystem_of, is_absent, is_remote, source_error
from kinodex.pipeline.source import Stamp
from kinodex.pipeline.stamps import local_stamp, stamp_from_info

PlaceState = Literal["there", "gone", "unknown"]
LOOK_S = 10.0
"""A web server that is silent for so long is given up."""
LIMIT_S = 30.0
AT_ONCE = 16
REMOVABLE = re.compile(r"/(?:mnt|net|Volumes)/[^/]+|/(?:run/)?media/[^/]+/[^/]+")
"""Folders that systems mount disks at."""


@dataclass(frozen=True, slots=True)
class Place:
    """A source's address, and the mount point of the file system that a local one was last seen in, if it is known."""

    uri: str
    mount: str | None = None
    is_named: bool = False
    """True if the user named its origin."""


@dataclass(frozen=True, slots=True)
class Look:
    """State of a place, the stamp of what is there, and why nothing is known of it."""

    state: PlaceState
    stamp: Stamp | None = None
    why: str = ""


NOT_LOOKED = Look("unknown", why="the time for looking was over")


def look(place: Place) -> Look:
    """Look up one place, without trying again; a file elsewhere is not opened."""
    if is_remote(place.uri):
        return _look_elsewhere(place.uri, place.is_named)
    try:
        info = Path(place.uri).stat()
        return Look("there", local_stamp(info.st_size, info.st_mtime_ns))
    except (OSError, ValueError) as error:
        if not is_absent(error):
            return Look("unknown", why=str(source_error(place.uri, error)))
    missing = missing_mount(place)
    return Look("unknown", why=f"{missing} is not there, or its disk is not mounted") if missing else Look("gone")


def look_at_all(places: Sequence[Place], limit_s: float = LIMIT_S, at_once: int = AT_ONCE) -> list[Look]:
    """Look up many places, `at_once` together, in threads that nobody waits for: a look may hang for ever."""
    found = [NOT_LOOKED] * len(places)
    waiting: SimpleQueue[int] = SimpleQueue()
    for number in range(len(places)):
        waiting.put(number)
    until_s = time.monotonic() + limit_s

    def work() -> None:
        while time.monotonic() < until_s:
            try:
                number = waiting.get_nowait()
            except Empty:
                return
            found[number] = look(places[number])

    threads = [Thread(target=work, name="look", daemon=True) for _ in range(min(at_once, len(places)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, until_s - time.monotonic()))
    return list(found)  # a late thread changes nothing any more


def missing_mount(place: Place) -> str | None:
    """Name the folder that is missing where a local file is; None if only the file, or a folder below, is gone.

    Where its mount point is known, that has to be one now. Else a folder counts that systems mount disks at, and one
    that is there and empty, as a mount point without its disk is. The top of the path counts always: another machine,
    or a container, lacks it.
    """
    folders = Path(place.uri).parents
    nearest = next((each for each in folders if each.is_dir()), folders[-1])
    if nearest == folders[-1] and len(folders) > 1:
        return str(folders[-2])
    if place.mount is not None:
        return None if Path(place.mount).is_mount() else place.mount
    usual = REMOVABLE.match(place.uri)
    if usual and not _holds_anything(usual[0]):
        return usual[0]
    return None if _holds_anything(nearest) else str(nearest)


def _holds_anything(folder: str | Path) -> bool:
    """Return True for a folder that is there and not empty; one that may not be listed counts as such."""
    try:
        with os.scandir(folder) as entries:
            return next(entries, None) is not None
    except FileNotFoundError:
        return False
    except OSError:
        return True


def _look_elsewhere(uri: str, is_named: bool) -> Look:
    try:
        filesystem, path = filesystem_of(uri, LOOK_S, is_named)
        filesystem.invalidate_cache()
        info = filesystem.info(path)
        if info.get("type") != "file":
            return Look("gone")  # an object store has a folder wherever a name begins so
        return Look("there", stamp_from_info(info))
    # Each fsspec backend raises its own client library's errors, which have no common base but Exception.
    except Exception as error:
        is_gone = is_absent(error) and _has_root(uri, is_named)
        return Look("gone") if is_gone else Look("unknown", why=str(source_error(uri, error)))


def _has_root(uri: str, is_named: bool) -> bool:
    """Return True if the bucket, or the top folder, that holds a file elsewhere is there.

    A web server is there if it answers.
    """
    filesystem, path = filesystem_of(uri, LOOK_S, is_named)
    top, _, below = path.strip("/").partition("/")
    try:
        return uri.startswith(("http://", "https://")) or not below or bool(filesystem.exists(top))
    except Exception:  # as above
        return False
