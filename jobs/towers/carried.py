"""Towers that a library carries, so that all who can read it can search it, without torch."""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from kinodex.index.errors import (
    ExportRefused,
    LibraryBusy,
    NoVectors,
    SpaceError,
    SpaceMismatch,
    StorageError,
    TowersDamaged,
    WeightsMissing,
)
from kinodex.index.library import Library
from kinodex.index.spaces.fingerprint import Fingerprint
from kinodex.index.spaces.model_names import check_exported, exported_folder
from kinodex.index.spaces.named_models import check_named
from kinodex.index.spaces.towers import (
    SpaceTowers,
    TowerFacts,
    TowerKind,
    check_content,
    describe_tower,
    read_towers,
    read_whole,
    write_towers,
)
from kinodex.index.store.carried_towers import LEASE, held_towers, keep_towers, shipped_tower
from kinodex.jobs.towers.export_process import exported_tower

if TYPE_CHECKING:
    from kinodex.index.spaces.sentence_model import SentenceModel
    from kinodex.index.spaces.video_text import VideoTextModel

log = logging.getLogger(__name__)


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
    name stands for other weights here, NoVectors where there is no space, a SpaceError if the model cannot be had,
    ModuleNotFoundError without torch or onnx.
    """
    if not space.has_vectors:
        raise NoVectors.of(library.uri, "a tower")
    began = time.monotonic()
    with library.lease(LEASE, "kinodex add text-tower"), TemporaryDirectory() as scratch:
        held = _readable_towers(library.uri, space)
        done = [kind for kind in kinds if again or not _is_settled(held, kind)]
        for kind in done:
            if ready := _ready_tower(library.uri, space, kind):
                made = Path(scratch)
                _copy(ready, kind, made)
            else:
                made = exported_tower(library.uri, space, kind, again)
            held = keep_towers(library.uri, made, space)
    refused = tuple(kind for kind in done if held.tower(kind) is None)
    return Carried(held, tuple(kind for kind in done if kind not in refused), refused, time.monotonic() - began)


def begin_carrying(uri: str, space: Fingerprint, kinds: Sequence[TowerKind]) -> Callable[[], list[str]]:
    """Carry towers in a thread beside other work; what is returned waits for it, and gives the lines of it to log."""
    pool = ThreadPoolExecutor(1, "towers")
    carried = pool.submit(partial(carry_or_note, Library.open(uri), space, kinds))
    pool.shutdown(wait=False)
    return carried.result


def carry_or_note(library: Library, space: Fingerprint, kinds: Sequence[TowerKind]) -> list[str]:
    """Carry towers; return lines to log about what was done, or why it could not be."""
    held = _readable_towers(library.uri, space)
    missing = [kind for kind in kinds if not _is_settled(held, kind)]
    return [line for kind in missing for line in _carried_or_note(library, space, kind)]


def lacks_towers(library: Library, space: Fingerprint, kinds: Sequence[TowerKind]) -> bool:
    """Return True if `carry_or_note` would export one of these towers."""
    held = _readable_towers(library.uri, space)
    return any(not _is_settled(held, kind) for kind in kinds)


def _carried_or_note(library: Library, space: Fingerprint, kind: TowerKind) -> list[str]:
    """Carry one tower; return nothing to log for one that was exported before, which is only copied."""
    later = f"`kinodex add text-tower {library.uri}{' --with-image-tower' * (kind == 'image')}` tries again"
    is_ready = shipped_tower(space.digest, kind) is not None or exported_folder(space.name) is not None
    try:
        carried = carry_towers(library, space, [kind])
    except WeightsMissing as error:
        return [f"note: {error}; frames are embedded without it, a search by words will need it"]
    except (LibraryBusy, SpaceMismatch, SpaceError, StorageError, ModuleNotFoundError) as error:
        return [f"note: the {kind} tower of {space.name} was not exported: {error}; {later}"]
    if kind in carried.refused:
        why = carried.towers.refusals[kind]
        return [f"note: the {kind} tower of {space.name} is not kept with the library: {why}; searching needs torch"]
    if is_ready:
        return []
    state = describe_tower(carried.towers, kind)
    return [f"{kind} tower of {space.name}: {state}, exported in {carried.seconds:.1f} s"]


def carry_sentences(library: Library, model: SentenceModel) -> list[str]:
    """Export a sentence model, unless the library carries it or it was refused; return lines to log about it."""
    from kinodex.index.spaces.export_sentences import export_sentence_model

    return _carry_texts(library, model.space, partial(export_sentence_model, model), "kinodex add sentences")


def carry_clips(library: Library, model: VideoTextModel) -> list[str]:
    """Export what a video-text model makes of texts, as `carry_sentences` does."""
    from kinodex.index.spaces.export_video_text import export_video_text_model

    return _carry_texts(library, model.space, partial(export_video_text_model, model), "kinodex add clips")


def _carry_texts(library: Library, space: Fingerprint, export: Callable[[Path], TowerFacts], owner: str) -> list[str]:
    began = time.monotonic()
    try:
        with library.lease(LEASE, owner), TemporaryDirectory() as scratch:
            if _is_settled(_readable_towers(library.uri, space), "text"):
                return []
            folder, made, refusals = Path(scratch), None, {}
            try:
                made = export(folder)
            except ExportRefused as error:
                refusals["text"] = str(error)
            write_towers(folder, SpaceTowers(space, made, None, refusals))
            held = keep_towers(library.uri, folder)
    except LibraryBusy as error:
        return [f"note: {space.name} was not exported: {error}; the same command tries again"]
    if refusals:
        return [f"note: {space.name} is not kept with the library: {refusals['text']}; searching by it needs torch"]
    return [f"{space.name}: {describe_tower(held, 'text')}, exported in {time.monotonic() - began:.1f} s"]


def log_notes(lines: Iterable[str]) -> None:
    """Log lines, which the command line shows on stderr."""
    for line in lines:
        log.warning("%s", line)


def _is_settled(held: SpaceTowers, kind: TowerKind) -> bool:
    return held.tower(kind) is not None or kind in held.refusals


def _readable_towers(uri: str, space: Fingerprint) -> SpaceTowers:
    """Read what a library carries; damaged towers are none, so that they are exported again."""
    try:
        return held_towers(uri, space.digest) or SpaceTowers(space)
    except TowersDamaged:
        return SpaceTowers(space)


def _ready_tower(uri: str, space: Fingerprint, kind: TowerKind) -> Path | None:
    """Find the folder with an exported tower of a space that kinodex brings, or that the space's name gives.

    Raises as loading it does: ModelNotNamed, WeightsMissing, TowersDamaged, or SpaceMismatch for that of another space.
    """
    folder = exported_folder(space.name)
    if (shipped := shipped_tower(space.digest, kind)) or folder is None:
        return shipped
    check_named(space.name, uri)
    check_exported(space.name, kind)
    here, _ = read_whole(folder, kind, space.name)
    if here.digest != space.digest:
        raise SpaceMismatch(f"here {space.name} stands for other weights: {here} instead of {space}")
    return folder


def _copy(made: Path, kind: TowerKind, folder: Path) -> None:
    """Copy one tower of a folder that holds it."""
    ready = read_towers(made)
    tower = ready.tower(kind) if ready else None
    if ready is None or tower is None:
        raise ValueError(f"got {kind}, of which {made} holds no tower")
    for name in tower.files:
        shutil.copyfile(made / name, folder / name)
    check_content(folder, tower.files, str(made))
    alone: dict[str, Any] = {"text": None, "image": None, kind: tower}
    write_towers(folder, replace(ready, **alone))


def tower_states(library: Library) -> list[dict[str, Any]]:
    """List the towers of every space of a library: text towers, and image towers of which something is known."""
    from kinodex.index.spaces.trial import read_trial

    states = []
    for space in library.spaces():
        try:
            towers = held_towers(library.uri, space.digest) or SpaceTowers(space)
            found = {"text": describe_tower(towers, "text")}
            if _is_settled(towers, "image"):
                found["image"] = describe_tower(towers, "image")
        except TowersDamaged as error:
            found = {"text": str(error)}
        if trial := read_trial(space.digest):
            costs = ", ".join(f"{seconds:.3f} in {name}" for name, seconds in trial.cpu_s_a_picture.items())
            chosen = "as exported" if trial.taken else "by torch"
            found["image, on this machine,"] = f"{chosen}: {trial.why}; CPU seconds a picture: {costs}"
        states += [
            {"space": space.name, "digest": space.digest, "tower": kind, "state": state}
            for kind, state in found.items()
        ]
    return states
