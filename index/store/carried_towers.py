"""Exported towers kept with a library, under `towers/<digest of their space>/` beside its tables.

In a library on this machine they are read in place. From an object store a tower is fetched once, into the user's
cache, by Lance's own client: so the credentials that open the library fetch its towers. `tower.json` is written last
and, where files are written in place of others, taken away first: a write that is interrupted leaves no tower. Writers
hold a lease of the library (`LEASE`); readers need none.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import get_ident
from typing import TYPE_CHECKING, Any, Literal

from kinodex.index.errors import SpaceMismatch, StorageError, TorchMissing, TowersDamaged
from kinodex.index.spaces.load import torch_package
from kinodex.index.spaces.named_models import check_named
from kinodex.index.spaces.sentence_model import SentenceEmbedder
from kinodex.index.spaces.space import Space, load_space
from kinodex.index.spaces.towers import (
    BUILTIN_TOWERS,
    TOWER_JSON,
    TOWERS,
    Fingerprint,
    ImageEmbedder,
    Sigmoid,
    SpaceTowers,
    TextEmbedder,
    TowerKind,
    cache_folder,
    check_content,
    check_sizes,
    fetched_place,
    find_whole,
    is_whole,
    put_whole,
    read_towers,
    scratch_beside,
    write_towers,
)
from kinodex.index.store.database import is_local, open_files, storage_errors

if TYPE_CHECKING:
    from lance.file import LanceFileSession

LEASE = "towers"
"""Name of the lease under which towers are written."""


def held_towers(uri: str, digest: str) -> SpaceTowers | None:
    """Read the description of a library's towers for a space, or None; raises TowersDamaged or StorageError."""
    with _again_advice(uri):
        if is_local(uri):
            towers = read_towers(_local_folder(uri, digest))
            if towers is not None:
                check_sizes(_local_folder(uri, digest), towers.files)
            return towers
        with TemporaryDirectory() as scratch:
            return fetch_description(open_files(uri), uri, digest, Path(scratch))


def find_tower(uri: str, digest: str, kind: TowerKind, again: str = "") -> Path | None:
    """Find the folder on this machine with a tower of a space that a library carries; None if it carries none.

    Raises TowersDamaged for files that are not as they were written, which `again` is the command against.
    """
    with _again_advice(uri, again):
        if not is_local(uri):
            return cached_tower(uri, digest, kind)
        folder = _local_folder(uri, digest)
        found = find_whole(folder, kind)
        if found is not None:
            check_space(found[0], digest, folder)
        return folder if found is not None else None


def open_text_tower(uri: str, digest: str) -> TextEmbedder | None:
    """Open the exported text tower of a space, built in or carried, or None; imports neither torch nor open_clip."""
    folder = builtin_tower(digest, "text") or find_tower(uri, digest, "text")
    if folder is None:
        return None
    from kinodex.index.spaces import text_tower

    return text_tower.TextTower.open(folder)


def open_image_tower(uri: str, digest: str) -> ImageEmbedder | None:
    """Open the exported image tower of a space, built in or carried, or None."""
    folder = builtin_tower(digest, "image") or find_tower(uri, digest, "image")
    if folder is None:
        return None
    from kinodex.index.spaces import cpu

    return cpu.ImageTower.open(folder)


def open_sentence_tower(uri: str, space: Fingerprint) -> SentenceEmbedder | None:
    """Open the sentence model that a library carries; None if it carries none. Raises as `open_text_tower` does."""
    folder = find_tower(uri, space.digest, "text", f"kinodex add sentences {uri} --model {space.name}")
    if folder is None:
        return None
    from kinodex.index.spaces import sentence_model

    return sentence_model.SentenceTower.open(folder)


def sigmoid_of(uri: str, space: Fingerprint) -> Sigmoid | None:
    """The sigmoid of a space, built in or as a library carries it; None where nothing of it is known."""
    builtin = read_towers(BUILTIN_TOWERS)
    if builtin is not None and builtin.space.digest == space.digest:
        return builtin.sigmoid
    try:
        held = held_towers(uri, space.digest)
    except (TowersDamaged, StorageError):
        return None  # a search by words alone goes on without it
    return None if held is None else held.sigmoid


def check_space(found: Fingerprint, digest: str, place: object) -> None:
    """Raise TowersDamaged for a tower that says to be of another space than that in whose folder it lies."""
    if found.digest != digest:
        raise TowersDamaged(f"{place} holds a tower of the space {found.digest}")


def builtin_tower(digest: str, kind: TowerKind) -> Path | None:
    """Find the folder with a tower of the built-in space, if that is the space of this digest."""
    towers = read_towers(BUILTIN_TOWERS)
    if towers is None or towers.space.digest != digest or towers.tower(kind) is None:
        return None
    return BUILTIN_TOWERS


def keep_towers(uri: str, made: Path, space: Fingerprint | None = None) -> SpaceTowers:
    """Keep the towers of a folder with a library, beside or in place of those that it carries for the same space.

    They may have been made by another name of it than `space` is. Returns all that it carries now. The caller holds
    the lease `LEASE`.
    """
    new = read_towers(made)
    if new is None:
        raise ValueError(f"got {made}, which holds no {TOWER_JSON}")
    new = replace(new, space=space or new.space)
    digest = new.space.digest
    try:
        merged = _merged(held_towers(uri, digest), new)
    except TowersDamaged:
        merged = new
    if is_local(uri):
        with storage_errors(uri):
            _write_here(_local_folder(uri, digest), made, merged, [*new.files])
    else:
        _upload(uri, digest, made, merged, [*new.files])
    return merged


def _merged(held: SpaceTowers | None, new: SpaceTowers) -> SpaceTowers:
    """Combine descriptions; of each tower the new one counts, or its refusal."""
    if held is None:
        return new
    sigmoid = new.sigmoid or held.sigmoid
    both = replace(new, text=new.text or held.text, image=new.image or held.image, sigmoid=sigmoid)
    refusals = {**held.refusals, **new.refusals}
    return replace(both, refusals={kind: why for kind, why in refusals.items() if getattr(both, kind) is None})


@contextmanager
def _again_advice(uri: str, again: str = "") -> Iterator[None]:
    """Say in errors about damaged towers how to write them again."""
    command = again or f"kinodex add text-tower {uri} --again"
    try:
        yield
    except TowersDamaged as error:
        raise TowersDamaged(f"{error}; `{command}` writes towers again") from error


def _local_folder(uri: str, digest: str) -> Path:
    return Path(uri) / TOWERS / digest


def _write_here(folder: Path, made: Path, towers: SpaceTowers, names: list[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / TOWER_JSON).unlink(missing_ok=True)
    for name in names:
        partial = folder / f".{name}.{os.getpid()}"
        try:
            _link_or_copy(made / name, partial)
            partial.replace(folder / name)
        finally:
            partial.unlink(missing_ok=True)
    write_towers(folder, towers)


def _link_or_copy(file: Path, place: Path) -> None:
    """Give a file a second name, or copy it to another disk; nothing here changes a tower's file in its place."""
    with suppress(OSError):
        place.hardlink_to(file)
        return
    shutil.copyfile(file, place)
    with place.open("rb+") as stream:  # on the disk before anything names it
        os.fsync(stream.fileno())


def _upload(uri: str, digest: str, made: Path, towers: SpaceTowers, names: list[str]) -> None:
    session, folder = open_files(uri), f"{TOWERS}/{digest}"
    with TemporaryDirectory() as scratch, storage_errors(uri):
        write_towers(Path(scratch), towers)
        if session.contains(f"{folder}/{TOWER_JSON}"):
            session.delete_file(f"{folder}/{TOWER_JSON}")
        for name in names:
            session.upload_file(made / name, f"{folder}/{name}")
        session.upload_file(Path(scratch) / TOWER_JSON, f"{folder}/{TOWER_JSON}")


# Towers of libraries in object stores, fetched once into the user's cache.
#
# A tower lies there under the digest of its own bytes, and a note says which a library carries: so libraries share it
# that carry the same, and nobody's tower stands in for another's, whatever space it claims to be of.


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
    """The folder of the tower that a library carried when it was fetched."""
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


# Models of the spaces that a library holds: its exported tower, else by torch, checked against what is stored.

Towers = Literal["both", "text", "image"]


def load_tower_of(uri: str, held: Fingerprint, towers: Towers) -> Space | TextEmbedder | ImageEmbedder:
    """Load one tower, or both, of a space that the library at `uri` holds; see `LibraryReader.load_space`."""
    if towers == "text" and (text_tower := open_text_tower(uri, held.digest)):
        return text_tower
    if towers == "image" and (image_tower := open_image_tower(uri, held.digest)):
        return image_tower
    check_named(held.name, uri)
    try:
        loaded = load_space(held.name, towers=towers)
    except ModuleNotFoundError as error:
        if torch_package(error) is None:
            raise
        option = " --with-image-tower" if towers == "image" else ""
        way = f"{uri} carries no exported tower for that; run `kinodex add text-tower {uri}{option}` where the model is"
        way += ", or `pip install 'kinodex[clip]'` here"
        raise TorchMissing(f"cannot embed with {held.name}: {error.name} is not installed, and {way}") from error
    if loaded.fingerprint.digest != held.digest:
        raise SpaceMismatch(
            f"got space {loaded.fingerprint}, but {uri} holds {held}: here the same name stands for other "
            "weights or other preprocessing; use those that the library was made with"
        )
    return loaded
