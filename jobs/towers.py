"""Towers of a space exported and kept with a library, so that all who can read it can search it, without torch.

An ingest and `kinodex add vectors` do so by the way: what cannot be exported is said in a line, and a tower that was
refused is not tried again. `kinodex add text-tower` does it on its own.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from kinodex.index.errors import ExportRefused, LibraryBusy, SpaceError, SpaceMismatch, TowersDamaged, WeightsMissing
from kinodex.index.library import Library
from kinodex.index.spaces.cpu import CpuTower
from kinodex.index.spaces.space import fetch_tokenizer
from kinodex.index.spaces.towers import (
    BUILTIN_TOWERS,
    Fingerprint,
    ImageEmbedder,
    Sigmoid,
    SpaceTowers,
    TowerFacts,
    TowerKind,
    describe_tower,
    read_towers,
    write_towers,
)
from kinodex.index.store.carried_towers import LEASE, builtin_tower, find_tower, held_towers, keep_towers

if TYPE_CHECKING:
    from kinodex.index.spaces.sentence_model import SentenceModel


@dataclass(frozen=True, slots=True)
class Carried:
    """Towers that a library carries for a space, those that were exported or refused just now, and the time it took."""

    towers: SpaceTowers
    exported: tuple[TowerKind, ...]
    refused: tuple[str, ...]
    seconds: float


def carry_towers(library: Library, space: Fingerprint, kinds: Iterable[TowerKind], again: bool = False) -> Carried:
    """Export those of these towers of a space that a library does not carry, and keep them with it.

    With `again` also those that it carries, and those refused before. Raises LibraryBusy, SpaceMismatch if the space's
    name stands for other weights here, a SpaceError if the model cannot be had, ModuleNotFoundError without torch or
    onnx.
    """
    began = time.monotonic()
    made: dict[TowerKind, TowerFacts] = {}
    refusals: dict[str, str] = {}
    sigmoid: Sigmoid | None = None
    with library.lease(LEASE, "kinodex add text-tower"), TemporaryDirectory() as scratch:
        folder, held = Path(scratch), _readable_towers(library.uri, space)
        for kind in [kind for kind in kinds if again or not _is_settled(held, kind)]:
            try:
                made[kind], sigmoid = _make_tower(space, kind, folder)
            except ExportRefused as error:
                refusals[kind] = str(error)
        if made or refusals:
            towers = SpaceTowers(space, made.get("text"), made.get("image"), refusals, sigmoid=sigmoid)
            write_towers(folder, towers)
            held = keep_towers(library.uri, folder)
    return Carried(held, tuple(made), tuple(refusals), time.monotonic() - began)


def carry_or_note(library: Library, space: Fingerprint, kinds: Sequence[TowerKind]) -> list[str]:
    """Carry towers beside other work; return lines to print about what was done, or why it could not be."""
    held = _readable_towers(library.uri, space)
    missing = [kind for kind in kinds if not _is_settled(held, kind)]
    return [line for kind in missing for line in _carried_or_note(library, space, kind)]


def lacks_towers(library: Library, space: Fingerprint, kinds: Sequence[TowerKind]) -> bool:
    """True if `carry_or_note` would export one of these towers."""
    held = _readable_towers(library.uri, space)
    return any(not _is_settled(held, kind) for kind in kinds)


def _carried_or_note(library: Library, space: Fingerprint, kind: TowerKind) -> list[str]:
    """Carry one tower; return nothing to print for one of the built-in space, which is only copied."""
    later = f"`kinodex add text-tower {library.uri}{' --with-image-tower' * (kind == 'image')}` tries again"
    is_builtin = builtin_tower(space.digest, kind) is not None
    try:
        if kind == "text" and not is_builtin:
            fetch_tokenizer(space.name)  # of all that may be missing the only thing that nobody has needed yet
        carried = carry_towers(library, space, [kind])
    except WeightsMissing as error:
        return [f"note: {error}; frames are embedded without it, a search by words will need it"]
    except (LibraryBusy, SpaceMismatch, SpaceError, ModuleNotFoundError) as error:
        return [f"note: the {kind} tower of {space.name} was not exported: {error}; {later}"]
    if kind in carried.refused:
        why = carried.towers.refusals[kind]
        return [f"note: the {kind} tower of {space.name} is not kept with the library: {why}; searching needs torch"]
    if is_builtin:
        return []
    state = describe_tower(carried.towers, kind)
    return [f"{kind} tower of {space.name}: {state}, exported in {carried.seconds:.1f} s"]


def carry_sentences(library: Library, model: SentenceModel) -> list[str]:
    """Export a sentence model, unless the library carries it or it was refused; return lines to print about it."""
    from kinodex.index.spaces.sentence_model import export_sentence_model

    space, began = model.space, time.monotonic()
    try:
        with library.lease(LEASE, "kinodex add sentences"), TemporaryDirectory() as scratch:
            if _is_settled(_readable_towers(library.uri, space), "text"):
                return []
            folder, made, refusals = Path(scratch), None, {}
            try:
                made = export_sentence_model(model, folder)
            except ExportRefused as error:
                refusals["text"] = str(error)
            write_towers(folder, SpaceTowers(space, made, None, refusals))
            held = keep_towers(library.uri, folder)
    except LibraryBusy as error:
        return [f"note: {space.name} was not exported: {error}; the same command tries again"]
    if refusals:
        return [f"note: {space.name} is not kept with the library: {refusals['text']}; searching by it needs torch"]
    return [f"{space.name}: {describe_tower(held, 'text')}, exported in {time.monotonic() - began:.1f} s"]


def offer_carried(tower: ImageEmbedder, uri: str) -> None:
    """Let a tower on a CPU look for its exported graph with the library at `uri`, too; others need none."""
    if isinstance(tower, CpuTower):
        tower.offer(partial(find_tower, uri, tower.fingerprint.digest, "image"))


def print_notes(lines: Iterable[str]) -> None:
    """Print lines on stderr."""
    for line in lines:
        print(line, file=sys.stderr, flush=True)


def _is_settled(held: SpaceTowers, kind: TowerKind) -> bool:
    return held.tower(kind) is not None or kind in held.refusals


def _readable_towers(uri: str, space: Fingerprint) -> SpaceTowers:
    """Read what a library carries; damaged towers are none, so that they are exported again."""
    try:
        return held_towers(uri, space.digest) or SpaceTowers(space)
    except TowersDamaged:
        return SpaceTowers(space)


def _make_tower(space: Fingerprint, kind: TowerKind, folder: Path) -> tuple[TowerFacts, Sigmoid | None]:
    """Write the files of a tower into `folder`, and give the space's sigmoid beside it; built-in ones are copied."""
    ready = read_towers(BUILTIN_TOWERS) if builtin_tower(space.digest, kind) else None
    if ready is not None and (tower := ready.tower(kind)) is not None:
        for name in tower.files:
            shutil.copyfile(BUILTIN_TOWERS / name, folder / name)
        return tower, ready.sigmoid
    from kinodex.index.spaces.cpu import export_image_tower
    from kinodex.index.spaces.export_text import export_text_tower
    from kinodex.index.spaces.space import load_space

    loaded = load_space(space.name, device="cpu", towers=kind)
    if loaded.fingerprint.digest != space.digest:
        raise SpaceMismatch(f"here {space.name} stands for other weights: {loaded.fingerprint} instead of {space}")
    return (export_text_tower if kind == "text" else export_image_tower)(loaded, folder), loaded.sigmoid


def tower_states(library: Library) -> list[dict[str, Any]]:
    """List the towers of every space of a library: text towers, and image towers of which something is known."""
    states = []
    for space in library.spaces():
        try:
            towers = held_towers(library.uri, space.digest) or SpaceTowers(space)
            found = {"text": describe_tower(towers, "text")}
            if _is_settled(towers, "image"):
                found["image"] = describe_tower(towers, "image")
        except TowersDamaged as error:
            found = {"text": str(error)}
        states += [
            {"space": space.name, "digest": space.digest, "tower": kind, "state": state}
            for kind, state in found.items()
        ]
    return states
