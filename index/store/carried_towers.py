"""Exported towers kept with a library, under `towers/<digest of their space>/` beside its tables.

In a library on this machine they are read in place. From an object store a tower is fetched once, into the user's
cache, by Lance's own client: so the credentials that open the library fetch its towers. `tower.json` is written last
and, where files are written in place of others, taken away first: a write that is interrupted leaves no tower. Writers
hold a lease of the library (`LEASE`); readers need none.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from kinodex.index.errors import StorageError, TowersDamaged
from kinodex.index.spaces.embedders import ImageEmbedder, TextEmbedder
from kinodex.index.spaces.fingerprint import Fingerprint
from kinodex.index.spaces.sentence_tower import SentenceEmbedder
from kinodex.index.spaces.towers import (
    SHIPPED,
    TOWER_JSON,
    TOWERS,
    SpaceTowers,
    TowerKind,
    check_sizes,
    find_whole,
    read_towers,
    write_towers,
)
from kinodex.index.store.fetched_towers import cached_tower, check_space, fetch_description
from kinodex.index.store.places import is_local, open_files
from kinodex.index.store.storage_errors import storage_errors

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
    """Open the exported text tower of a space, shipped or carried, or None; imports neither torch nor open_clip."""
    folder = shipped_tower(digest, "text") or find_tower(uri, digest, "text")
    if folder is None:
        return None
    from kinodex.index.spaces.text_tower import TextTower

    return TextTower.open(folder)


def open_image_tower(uri: str, digest: str) -> ImageEmbedder | None:
    """Open the exported image tower of a space, shipped or carried, or None."""
    folder = shipped_tower(digest, "image") or find_tower(uri, digest, "image")
    if folder is None:
        return None
    from kinodex.index.spaces.image_tower import ImageTower

    return ImageTower.open(folder)


def open_sentence_tower(uri: str, space: Fingerprint) -> SentenceEmbedder | None:
    """Open the sentence model that a library carries; None if it carries none. Raises as `open_text_tower` does."""
    folder = find_tower(uri, space.digest, "text", f"kinodex add sentences {uri} --model {space.name}")
    if folder is None:
        return None
    from kinodex.index.spaces.sentence_tower import SentenceTower

    return SentenceTower.open(folder)


def described_towers(uri: str, space: Fingerprint) -> SpaceTowers | None:
    """Return the description of a space's towers, shipped or as a library carries them; None where there is none."""
    if shipped := _shipped(space.digest):
        return shipped[1]
    try:
        return held_towers(uri, space.digest)
    except (TowersDamaged, StorageError):
        return None  # a search by words alone goes on without it


def shipped_tower(digest: str, kind: TowerKind) -> Path | None:
    """Find the folder with a tower of the space of this digest, if kinodex brings that."""
    found = _shipped(digest)
    return found[0] if found and found[1].tower(kind) is not None else None


def _shipped(digest: str) -> tuple[Path, SpaceTowers] | None:
    for folder in SHIPPED.values():
        towers = read_towers(folder)
        if towers is not None and towers.space.digest == digest:
            return folder, towers
    return None


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
    text, image = new.text or held.text, new.image or held.image
    both = replace(new, text=text, image=image, sigmoid=new.sigmoid or held.sigmoid, card=new.card or held.card)
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
