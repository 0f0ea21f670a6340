"""Exported towers in the user's cache: under the digest of a space a folder for each kind, put there whole."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from kinodex.index.errors import StorageError, TowersDamaged
from kinodex.index.spaces.towers import TOWER_JSON, TOWERS, TowerKind, find_whole


def cache_folder(digest: str) -> Path:
    """Folder in the user's cache for the towers of a space; `XDG_CACHE_HOME` counts."""
    home = os.environ.get("XDG_CACHE_HOME", "")
    root = Path(home) if Path(home).is_absolute() else Path.home() / ".cache"
    return root / "kinodex" / TOWERS / digest


def cached_place(digest: str, kind: TowerKind) -> Path:
    """Folder of a tower in the cache, whether it is there or not."""
    return cache_folder(digest) / kind


def fetched_place(made: Path) -> Path:
    """Folder in the cache of a tower that was fetched, by the digest of its own bytes.

    `made` holds it, with a `tower.json` whose hashes were computed from the files that came: what a library claims to
    be the tower of a space serves that library, and none that carries other bytes.
    """
    return cache_folder("fetched") / hashlib.sha256((made / TOWER_JSON).read_bytes()).hexdigest()[:32]


def is_whole(folder: Path, kind: TowerKind) -> bool:
    """Return True if a folder holds a tower; a damaged one does not count: it is made or fetched again."""
    try:
        return find_whole(folder, kind) is not None
    except TowersDamaged:
        return False


@contextmanager
def scratch_beside(place: Path) -> Iterator[Path]:
    """Make a folder on the cache's own disk that goes at the end of the block; raises StorageError."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=f".{place.name}.", dir=place.parent, ignore_cleanup_errors=True) as around:
            scratch = Path(around) / "new"
            scratch.mkdir()
            yield scratch
    except OSError as error:
        raise StorageError(
            f"cannot keep a tower in {place}: {error.strerror}; set XDG_CACHE_HOME to a folder with room that you "
            "may write"
        ) from error


def put_whole(whole: Path, place: Path, kind: TowerKind) -> None:
    """Give a folder its place in the cache: at once, and not if another process has put one there meanwhile."""
    try:
        whole.rename(place)
    except OSError:
        if not is_whole(place, kind):  # an earlier one, damaged since
            place.rename(whole.parent / "damaged")
            whole.rename(place)
