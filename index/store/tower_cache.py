"""Towers of libraries in object stores, fetched once into the user's cache.

A tower lies there under the digest of its space, so all libraries of one space share it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from index.embedding.portable.tower_files import (
    TOWER_JSON,
    TOWERS,
    SpaceTowers,
    TowerFacts,
    TowerKind,
    cache_folder,
    check_content,
    find_whole,
    read_towers,
    write_towers,
)
from index.errors import StorageError, TowersDamaged
from index.store.database import open_files, storage_errors

if TYPE_CHECKING:
    from lance.file import LanceFileSession


def cached_tower(uri: str, digest: str, kind: TowerKind) -> Path | None:
    """Find the folder in the cache with a tower that the library at `uri` carries, fetched if need be.

    Returns None if the library carries no such tower. Nothing is asked of the store for one that the cache holds.
    Raises TowersDamaged if what was fetched is not what was written, or StorageError.
    """
    cached = cache_folder(digest) / kind
    if _is_whole(cached, kind):
        return cached
    session = open_files(uri)
    with _scratch_beside(cached) as scratch:
        towers = fetch_description(session, uri, digest, scratch)
        tower = towers.tower(kind) if towers else None
        if towers is None or tower is None:
            return None
        with storage_errors(uri):
            for name in tower.files:
                session.download_file(f"{TOWERS}/{digest}/{name}", scratch / name)
        check_content(scratch, tower.files, f"{uri}/{TOWERS}/{digest}")
        write_towers(scratch, _only(towers, kind, tower))
        _put(scratch, cached, kind)
    return cached


def fetch_description(session: LanceFileSession, uri: str, digest: str, scratch: Path) -> SpaceTowers | None:
    """Download and read the `tower.json` of a space, or return None if there is none; the copy in `scratch` goes."""
    folder = f"{TOWERS}/{digest}"
    with storage_errors(uri):
        if not session.contains(f"{folder}/{TOWER_JSON}"):
            return None
        session.download_file(f"{folder}/{TOWER_JSON}", scratch / TOWER_JSON)
    try:
        return read_towers(scratch, f"{uri}/{folder}")
    finally:
        (scratch / TOWER_JSON).unlink()


def _is_whole(folder: Path, kind: TowerKind) -> bool:
    """True if the cache holds a tower; one that is damaged does not count: it is fetched again."""
    try:
        return find_whole(folder, kind) is not None
    except TowersDamaged:
        return False


def _only(towers: SpaceTowers, kind: TowerKind, tower: TowerFacts) -> SpaceTowers:
    alone: dict[str, Any] = {"text": None, "image": None, "refusals": {}, kind: tower}
    return replace(towers, **alone)


@contextmanager
def _scratch_beside(cached: Path) -> Iterator[Path]:
    """Make a folder on the cache's own disk that goes at the end of the block; raises StorageError."""
    try:
        cached.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=f".{cached.name}.", dir=cached.parent, ignore_cleanup_errors=True) as around:
            scratch = Path(around) / "new"
            scratch.mkdir()
            yield scratch
    except OSError as error:
        raise StorageError(
            f"cannot keep a tower in {cached}: {error.strerror}; set XDG_CACHE_HOME to a folder with room that you "
            "may write"
        ) from error


def _put(whole: Path, cached: Path, kind: TowerKind) -> None:
    """Give a fetched folder its place: at once, and not if another process has put one there meanwhile."""
    try:
        whole.rename(cached)
    except OSError:
        if not _is_whole(cached, kind):  # an earlier one, damaged since
            cached.rename(whole.parent / "damaged")
            whole.rename(cached)
