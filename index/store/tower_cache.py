"""Towers of libraries in object stores, fetched once into the user's cache.

A tower lies there under the digest of its space, so all libraries of one space share it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from index.embedding.portable.tower_files import (
    TOWER_JSON,
    TOWERS,
    SpaceTowers,
    TowerFacts,
    TowerKind,
    check_content,
    read_towers,
    write_towers,
)
from index.embedding.tower_cache import cached_place, is_whole, put_whole, scratch_beside
from index.store.database import open_files, storage_errors

if TYPE_CHECKING:
    from lance.file import LanceFileSession


def cached_tower(uri: str, digest: str, kind: TowerKind) -> Path | None:
    """Find the folder in the cache with a tower that the library at `uri` carries, fetched if need be.

    Returns None if the library carries no such tower. Nothing is asked of the store for one that the cache holds.
    Raises TowersDamaged if what was fetched is not what was written, or StorageError.
    """
    cached = cached_place(digest, kind)
    if is_whole(cached, kind):
        return cached
    session = open_files(uri)
    with scratch_beside(cached) as scratch:
        towers = fetch_description(session, uri, digest, scratch)
        tower = towers.tower(kind) if towers else None
        if towers is None or tower is None:
            return None
        with storage_errors(uri):
            for name in tower.files:
                session.download_file(f"{TOWERS}/{digest}/{name}", scratch / name)
        check_content(scratch, tower.files, f"{uri}/{TOWERS}/{digest}")
        write_towers(scratch, _only(towers, kind, tower))
        put_whole(scratch, cached, kind)
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


def _only(towers: SpaceTowers, kind: TowerKind, tower: TowerFacts) -> SpaceTowers:
    alone: dict[str, Any] = {"text": None, "image": None, "refusals": {}, kind: tower}
    return replace(towers, **alone)
