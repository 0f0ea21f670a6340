"""Towers of a space: exported once for this machine, embedding on its CPU, and kept with each library.

Where the cache lacks the towers of a model (`index/spaces/export.py`), a child process makes them, so that this one
imports neither torch nor open_clip, now or later. Frames wait for the image tower, which takes less than importing
torch a second time would; the text tower is made beside them. What cannot be exported is said in a line.
"""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from kinodex.errors import KinodexError
from kinodex.index import errors
from kinodex.index.errors import (
    BadCheckpoint,
    ExportRefused,
    LibraryBusy,
    SpaceError,
    SpaceMismatch,
    StorageError,
    TowersDamaged,
    UnknownModel,
    WeightsMissing,
)
from kinodex.index.library import Library
from kinodex.index.spaces.embedders import ImageEmbedder
from kinodex.index.spaces.fingerprint import Fingerprint
from kinodex.index.spaces.load import load_image_tower
from kinodex.index.spaces.model_names import BUILTIN_SPACE, absolute_name
from kinodex.index.spaces.named_models import check_named
from kinodex.index.spaces.space import Space, local_files
from kinodex.index.spaces.tower_cache import cached_place
from kinodex.index.spaces.towers import (
    BUILTIN_TOWERS,
    SpaceTowers,
    TowerFacts,
    TowerKind,
    describe_tower,
    read_towers,
    write_towers,
)
from kinodex.index.store.carried_towers import LEASE, builtin_tower, find_tower, held_towers, keep_towers
from kinodex.index.store.memory import free_memory_bytes

if TYPE_CHECKING:
    from kinodex.index.spaces.image_tower import ImageTower
    from kinodex.index.spaces.sentence_model import SentenceModel
    from kinodex.index.spaces.video_text import VideoTextModel

log = logging.getLogger(__name__)

# The image tower that embeds many pictures on this machine.

GPU_DEVICES = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")
"""One of them is there where torch may find a GPU that it calls cuda; looking so takes no torch."""
SMALL_BYTES = 40_000_000
"""Models of fewer bytes are loaded here, by torch: that is as quick, and the same on every machine."""


def load_embedder(name: str, device: str = "auto", library: Library | None = None) -> ImageEmbedder:
    """Load the image tower of the space called `name` for many pictures: on a CPU, as exported.

    It is the one that was exported here, else the one that `library` carries, if it makes the vectors that the library
    holds; else one is exported now; else torch's, where none can be had or torch is quicker. Raises as
    `load_image_tower` does.
    """
    on_cpu = device == "cpu" or (device == "auto" and not any(map(os.path.exists, GPU_DEVICES)))
    if name == BUILTIN_SPACE or not on_cpu:
        return load_image_tower(name, device)
    if library is not None and (carried := _carried_tower(library)):
        return carried
    name = absolute_name(name)
    if _is_small(name):
        return load_image_tower(name, device)
    from kinodex.index.spaces.export import cached_image_tower, read_cached, recall
    from kinodex.index.spaces.trial import read_trial

    known, why = recall(name), ""
    if known is None or read_cached(known.digest, "image") is None:
        try:
            _export_in_child(name, ["image", "text"], "image")
        except (UnknownModel, WeightsMissing, BadCheckpoint):
            raise  # so would loading it here
        except KinodexError as error:
            why = f"not exported to ONNX Runtime: {error}"
        known = recall(name)
    if known is not None and (tower := cached_image_tower(known)):
        return tower
    loaded = load_image_tower(name, device)
    if isinstance(loaded, Space):
        trial, held = read_trial(loaded.fingerprint.digest), read_cached(loaded.fingerprint.digest, "image")
        refused = held.refusals.get("image", "") if held else ""
        loaded.note = why or refused or (trial.why if trial and not trial.taken else "")
    return loaded


def _carried_tower(library: Library) -> ImageTower | None:
    """Open the image tower that a library carries, as exported here or verified, unless torch is quicker here."""
    from kinodex.index.spaces.export import cached_image_tower
    from kinodex.index.spaces.image_tower import IMAGE_ONNX, ImageTower
    from kinodex.index.spaces.trial import read_trial

    space = library.fingerprint
    if exported := cached_image_tower(space):
        return exported
    trial = read_trial(space.digest)
    if trial is None or trial.taken:
        with suppress(TowersDamaged, StorageError):
            if folder := find_tower(library.uri, space.digest, "image"):
                carried = ImageTower(space, folder / IMAGE_ONNX)
                return carried if _makes_stored_vectors(carried, library) else None
    return None


VERIFIED_FRAMES, VERIFIED_COSINE = 8, 0.9
"""Stored pictures by which a carried tower is verified, and the least mean cosine to their stored vectors: pictures are
stored smaller and compressed, and another tower's vectors have cosines about 0."""


def _makes_stored_vectors(tower: ImageTower, library: Library) -> bool:
    """True if a tower makes of stored pictures about the vectors that are stored; False too where none are stored."""
    from kinodex.jobs.library import stored_pictures

    video = next((row for row in library.videos() if row.frames), None)
    if video is None:
        return False
    first = next(stored_pictures(library, video, VERIFIED_FRAMES))
    stored = library.vectors(video.video_id)
    rows = [stored.frame_no.tolist().index(frame.frame_no) for frame, _ in first]
    made = tower.embed(np.stack([tower.prepare(np.asarray(picture)) for _, picture in first]))
    cosines = (made.astype(np.float32) * stored.vectors[rows].astype(np.float32)).sum(axis=1)
    return bool(cosines.mean() >= VERIFIED_COSINE)


def _is_small(name: str) -> bool:
    files = local_files(name)
    return bool(files) and sum(file.stat().st_size for file in files) < SMALL_BYTES


# Export into the cache, by a child process: it takes memory, which a process gives back, and this one goes on.

CHILD_BYTES, CHILD_TIMES = 600_000_000, 3
"""Memory that a child needs: so much for torch and open_clip, and the model so many times."""
UNKNOWN_BYTES = 1_500_000_000
"""Taken for the size of a model that the hub may have to send first: that of the default space."""

_children: dict[str, tuple[subprocess.Popen[str], TowerKind]] = {}
"""Children at work by the name of their space, each with the last tower that it makes; they end with this process."""


def _export_in_child(name: str, kinds: Sequence[TowerKind], awaited: TowerKind) -> None:
    """Have a child process export towers, and wait for one of them; raises the child's error, or ExportRefused."""
    if name not in _children:
        size = sum(file.stat().st_size for file in local_files(name)) or UNKNOWN_BYTES
        needed, free = CHILD_BYTES + CHILD_TIMES * size, free_memory_bytes()
        if free < needed:
            raise ExportRefused(f"that takes about {needed / 1e9:.1f} GB of memory, and {free / 1e9:.1f} GB are free")
        log.warning("exporting the towers of %s for this machine, once", name)
        _children[name] = _start_child(name, kinds), kinds[-1]
    child, last = _children[name]
    assert child.stdout is not None
    for line in child.stdout:
        kind, _, message = line.strip().partition(": ")
        if message or kind == last:
            _end_child(name)
        if message:
            raise getattr(errors, kind, ExportRefused)(message)
        if kind == awaited:
            return
        if kind == last:
            break
    else:
        if code := _end_child(name):
            raise ExportRefused(f"the process that exports it ended with status {code}")
    _export_in_child(name, [awaited], awaited)  # it made others


def _end_child(name: str) -> int:
    child, _ = _children.pop(name)
    child.communicate()
    return child.returncode


def _start_child(name: str, kinds: Sequence[TowerKind]) -> subprocess.Popen[str]:
    path = os.pathsep.join([str(Path(__file__).parents[2]), *filter(None, sys.path)])
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "ORT_DISABLE_TELEMETRY": "1"}
    command = [sys.executable, "-P", "-m", "kinodex.jobs.towers", name, *kinds]
    pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
    return subprocess.Popen(command, text=True, env=environment, stdin=pipe, stdout=pipe, stderr=nowhere)


def main() -> None:
    """Export towers as a child of `_export_in_child`, say each on stdout as it is there, and end with the parent."""
    from kinodex.index.spaces.export import export_to_cache

    with suppress(OSError):  # where memory runs out, this process is the one to lose
        Path("/proc/self/oom_score_adj").write_text("500")
    threading.Thread(target=_end_with_parent, daemon=True).start()
    said = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # torch prints the graphs that it cannot export
    try:
        for kind in export_to_cache(sys.argv[1], sys.argv[2:]):  # type: ignore[arg-type]
            print(kind, file=said)
    except Exception as error:  # whatever it is, the parent says it
        print(f"{type(error).__name__}: {[*str(error).splitlines(), 'no reason'][0]}", file=said)


def _end_with_parent() -> None:
    """End this process when its standard input closes, into which the parent writes nothing."""
    os.read(0, 1)  # not by `sys.stdin`, whose lock a thread may not hold when Python ends
    os._exit(1)


def _exported(uri: str, space: Fingerprint, kind: TowerKind, again: bool) -> Path:
    """Have a tower of a library's space in the cache, or its refusal.

    Raises ModelNotNamed if the library alone names it, SpaceMismatch if its name is another space here.
    """
    from kinodex.index.spaces.export import export_to_cache, read_cached, recall

    check_named(space.name, uri)
    place = cached_place(space.digest, kind)
    if again:
        shutil.rmtree(place, ignore_errors=True)
    if read_cached(space.digest, kind) is None:
        if "torch" in sys.modules or _is_small(space.name):
            list(export_to_cache(space.name, [kind]))
        else:
            _export_in_child(absolute_name(space.name), [kind], kind)
        here = recall(space.name)
        if here is None or here.digest != space.digest:
            raise SpaceMismatch(f"here {space.name} stands for other weights: {here} instead of {space}")
    return place


# Towers that a library carries, so that all who can read it can search it, without torch.


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
    with library.lease(LEASE, "kinodex add text-tower"), TemporaryDirectory() as scratch:
        held = _readable_towers(library.uri, space)
        done = [kind for kind in kinds if again or not _is_settled(held, kind)]
        for kind in done:
            made = Path(scratch) if builtin_tower(space.digest, kind) else _exported(library.uri, space, kind, again)
            if made == Path(scratch):
                _copy_builtin(kind, made)
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
    """True if `carry_or_note` would export one of these towers."""
    held = _readable_towers(library.uri, space)
    return any(not _is_settled(held, kind) for kind in kinds)


def _carried_or_note(library: Library, space: Fingerprint, kind: TowerKind) -> list[str]:
    """Carry one tower; return nothing to log for one of the built-in space, which is only copied."""
    later = f"`kinodex add text-tower {library.uri}{' --with-image-tower' * (kind == 'image')}` tries again"
    is_builtin = builtin_tower(space.digest, kind) is not None
    try:
        carried = carry_towers(library, space, [kind])
    except WeightsMissing as error:
        return [f"note: {error}; frames are embedded without it, a search by words will need it"]
    except (LibraryBusy, SpaceMismatch, SpaceError, StorageError, ModuleNotFoundError) as error:
        return [f"note: the {kind} tower of {space.name} was not exported: {error}; {later}"]
    if kind in carried.refused:
        why = carried.towers.refusals[kind]
        return [f"note: the {kind} tower of {space.name} is not kept with the library: {why}; searching needs torch"]
    if is_builtin:
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


def _copy_builtin(kind: TowerKind, folder: Path) -> None:
    ready = read_towers(BUILTIN_TOWERS)
    tower = ready.tower(kind) if ready else None
    if ready is None or tower is None:
        raise ValueError(f"got {kind}, of which the built-in space has no tower")
    for name in tower.files:
        shutil.copyfile(BUILTIN_TOWERS / name, folder / name)
    alone: dict[str, Any] = {"text": None, "image": None, kind: tower}
    write_towers(folder, SpaceTowers(ready.space, **alone, sigmoid=ready.sigmoid))


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


if __name__ == "__main__":
    main()
