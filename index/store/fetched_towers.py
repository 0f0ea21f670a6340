"""Towers of libraries in object stores, fetched once into the user's cache.

A tower lies there under the digest of its own bytes, and a note says which a library carries: so libraries share it
that carry the same, and nobody's tower stands in for another's, whatever space it claims to be of.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from pathlib import Path
from threading import get_ident
from typing import TYPE_CHECKING, Any

from kinodex.index.errors import TowersDamaged
from kinodex.index.spaces.fingerprint import Fingerprint
from kinodex.index.spaces.tower_cache import cache_folder, fetched_place, is_whole, put_whole, scratch_beside
from kinodex.index.spaces.towers import (
    TOWER_JSON,
    TOWERS,
    SpaceTowers,
    TowerKind,
    check_content,
    read_towers,
    write_towers,
)
from kinodex.index.store.places import open_files
from kinodex.index.store.storage_errors import storage_errors

if TYPE_CHECKING:
    from lance.file import LanceFileSession


def check_space(found: Fingerprint, digest: str, place: object) -> None:
    """Raise TowersDamaged for a tower that says to be of another space than that in whose folder it lies."""
    if found.digest != digest:
        raise TowersDamaged(f"{place} holds a tower of the space {found.digest}")


def cached_tower(uri: str, digest: str, kind: TowerKind) -> Path | None:
    """Find the folder in the cache with a tower that the library at `uri` carries, fetched if need be; None without."""
    note = cache_folder("fetched") / hashlib.sha256(f"{uri}\n{digest}\n{kind}".encode()).hexdigest()[:32]
    if (cached := _noted(note)) and is_whole(cached, kind):
        return cached
    session = open_files(uri)
    with scratch_beside(note) as scratch:
        towers = fetch_description(session, uri, digest, scratch)
        tower = towers.tower(kind) if towers else None
        if towers is None or tower is None:
            return None
        check_space(towers.space, digest, f"{uri}/{TOWERS}/{digest}")
        with storage_errors(uri):
            for name in tower.files:
                session.download_file(f"{TOWERS}/{digest}/{name}", scratch / name)
        check_content(scratch, tower.files, f"{uri}/{TOWERS}/{digest}")
        alone: dict[str, Any] = {"text": None, "image": None, "refusals": {}, kind: tower}
        write_towers(scratch, replace(towers, **alone))
        cached = fetched_place(scratch)
        put_whole(scratch, cached, kind)
        partial = note.with_name(f".{note.name}.{os.getpid()}.{get_ident()}")
        partial.write_text(cached.name, encoding="utf-8")
        partial.replace(note.with_suffix(".txt"))
    return cached


def _noted(note: Path) -> Path | None:
    """Return the folder of the tower that a library carried when it was fetched."""
    try:
        return note.with_name(note.with_suffix(".txt").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None


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
