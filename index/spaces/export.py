"""Towers of a space exported once for each machine, into the user's cache; after that a CPU needs no torch.

::

    ~/.cache/kinodex/towers/names/HASH.json       the space that a name stands for, and the files of its model
                            DIGEST/text/          an exported tower of the space, or why there is none
                            DIGEST/image/         the same, and trial.json: ONNX Runtime against torch on this machine

A name is known again as long as the files of its model are as they were. Towers are checked on pictures and texts when
they are exported, which one process does at a time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from kinodex.index.errors import ExportRefused, TowersDamaged, WeightsMissing
from kinodex.index.spaces.export_image import export_image_tower
from kinodex.index.spaces.fingerprint import Fingerprint
from kinodex.index.spaces.image_tower import IMAGE_ONNX, ImageTower
from kinodex.index.spaces.model_names import absolute_name
from kinodex.index.spaces.space import fetch_tokenizer, load_space
from kinodex.index.spaces.tower_cache import cache_folder, cached_place, put_whole, scratch_beside
from kinodex.index.spaces.towers import SpaceTowers, TowerFacts, TowerKind, check_sizes, read_towers, write_towers
from kinodex.index.spaces.trial import read_trial, write_json

if TYPE_CHECKING:
    from kinodex.index.spaces.space import Space


def recall(name: str) -> Fingerprint | None:
    """Return the space that a name stood for when its towers were exported, if the model's files are as they were."""
    try:
        found = json.loads(_record_of(name).read_text(encoding="utf-8"))
        same = found["open_clip"] in (_open_clip_version(), "") or not _open_clip_version()
        if same and found["files"] == {path: _stamp(Path(path)) for path in found["files"]}:
            return Fingerprint(**found["space"])
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return None


def remember(space: Fingerprint, files: Iterable[Path]) -> None:
    """Note the space that its name stands for, as long as these files of its model stay as they are."""
    record = _record_of(space.name)
    stamps = {str(path.absolute()): _stamp(path) for path in files}
    value = {"space": asdict(space), "open_clip": _open_clip_version(), "files": stamps}
    record.parent.mkdir(parents=True, exist_ok=True)
    write_json(record, value)


def read_cached(digest: str, kind: TowerKind) -> SpaceTowers | None:
    """Read what the cache holds of a tower, a refusal too; None for one that is missing or damaged."""
    folder = cached_place(digest, kind)
    with suppress(TowersDamaged):
        towers = read_towers(folder)
        if towers is not None and (towers.tower(kind) or kind in towers.refusals):
            check_sizes(folder, towers.files)
            return towers
    return None


def cached_image_tower(space: Fingerprint) -> ImageTower | None:
    """Open the image tower in the cache, unless it is missing, refused, or lost its trial on this machine."""
    held, trial = read_cached(space.digest, "image"), read_trial(space.digest)
    if held is None or held.image is None or (trial is not None and not trial.taken):
        return None
    return ImageTower(space, cached_place(space.digest, "image") / IMAGE_ONNX)


def export_to_cache(name: str, kinds: Sequence[TowerKind]) -> Iterator[TowerKind]:
    """Export towers of the space called `name` into the cache, and yield each as it is there; known ones at once.

    A tower that cannot be exported is kept as refused. Raises a SpaceError, StorageError, or ModuleNotFoundError.
    """
    name = absolute_name(name)
    with _only_writer(name):
        known = recall(name)
        left = [kind for kind in kinds if known is None or read_cached(known.digest, kind) is None]
        yield from (kind for kind in kinds if kind not in left)
        if not left:
            return
        space = _load(name, left)
        remember(space.fingerprint, space.files)
        for kind in left:
            if read_cached(space.fingerprint.digest, kind) is None:  # it may be there by another name
                _export(space, kind)
            yield kind


def _load(name: str, kinds: Sequence[TowerKind]) -> Space:
    if len(kinds) == 1:
        return load_space(name, device="cpu", towers=kinds[0])
    try:
        return load_space(name, device="cpu")
    except WeightsMissing:  # of the tokenizer alone, else this is the same error
        return load_space(name, device="cpu", towers="image")


def _export(space: Space, kind: TowerKind) -> None:
    from kinodex.index.spaces.export_text import export_text_tower

    if kind == "text":
        fetch_tokenizer(space.name)  # which may be missing; where it is not, it is there already
    place = cached_place(space.fingerprint.digest, kind)
    made: dict[TowerKind, TowerFacts] = {}
    refusals: dict[str, str] = {}
    with scratch_beside(place) as scratch:
        try:
            made[kind] = (export_text_tower if kind == "text" else export_image_tower)(space, scratch)
        except ExportRefused as error:
            refusals[kind] = str(error)
        towers = SpaceTowers(space.fingerprint, made.get("text"), made.get("image"), refusals, sigmoid=space.sigmoid)
        write_towers(scratch, towers)
        put_whole(scratch, place, kind)


@contextmanager
def _only_writer(name: str) -> Iterator[None]:
    """Wait until no other process exports towers of this name."""
    from fcntl import LOCK_EX, flock  # here, because the query side may be where there is none

    record = _record_of(name)
    with scratch_beside(record):
        pass  # the folder is there, and has room
    with record.with_suffix(".lock").open("w") as lock:
        flock(lock, LOCK_EX)
        yield


def _record_of(name: str) -> Path:
    return cache_folder("names") / f"{sha256(absolute_name(name).encode()).hexdigest()[:16]}.json"


def _stamp(path: Path) -> list[int]:
    state = path.stat()
    return [state.st_size, state.st_mtime_ns]


def _open_clip_version() -> str:
    try:
        return version("open_clip_torch")
    except PackageNotFoundError:
        return ""
