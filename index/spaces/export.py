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
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kinodex.index.errors import ExportRefused, TowersDamaged, WeightsMissing
from kinodex.index.spaces.cpu import IMAGE_ONNX, PIXELS, VECTORS, ImageTower
from kinodex.index.spaces.onnx_graphs import cut, halved, trace, weights_of
from kinodex.index.spaces.space import (
    MIN_COSINE,
    MIN_CPU_SPEEDUP,
    absolute_name,
    computes_bf16,
    features_of,
    fetch_tokenizer,
    load_space,
    processor_facts,
)
from kinodex.index.spaces.towers import (
    Fingerprint,
    SpaceTowers,
    TowerFacts,
    TowerKind,
    cache_folder,
    cached_place,
    check_sizes,
    put_whole,
    read_towers,
    scratch_beside,
    tower_facts,
    write_towers,
)

if TYPE_CHECKING:
    from kinodex.index.spaces.space import Space

# What the cache holds.

TRIAL_JSON = "trial.json"


@dataclass(frozen=True, slots=True)
class Trial:
    """ONNX Runtime against torch on one machine: which embeds its pictures, and why."""

    taken: bool
    """True if the exported tower does."""
    why: str
    cpu: str
    cpu_s_a_picture: Mapping[str, float]
    """By arithmetic, on one core."""


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
    _write_json(record, value)


def read_cached(digest: str, kind: TowerKind) -> SpaceTowers | None:
    """Read what the cache holds of a tower, a refusal too; None for one that is missing or damaged."""
    folder = cached_place(digest, kind)
    with suppress(TowersDamaged):
        towers = read_towers(folder)
        if towers is not None and (towers.tower(kind) or kind in towers.refusals):
            check_sizes(folder, towers.files)
            return towers
    return None


def read_trial(digest: str) -> Trial | None:
    """Read the trial of a space's image tower on this machine; None if there was none."""
    try:
        trial = Trial(**json.loads((cached_place(digest, "image") / TRIAL_JSON).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
    return trial if trial.cpu == processor_facts()[0] else None


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


def _write_json(path: Path, value: Any) -> None:
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")
    partial.replace(path)


# Export of an image tower to an ONNX graph that takes bytes and gives unit vectors. Needs torch and onnx.

PICTURES, FIRST_BATCH = 8, 1
"""Pictures of the check, and of its first batch, which is not timed: the graph must take any number."""
IMAGE_MIN_COSINE = 0.9999
MIN_HALF_COSINE = 0.999999
"""Weights are kept in half precision, half the size, where they give the same vectors to this cosine."""
MOST_BYTES = 2_000_000_000
"""A graph in one file cannot be larger (protobuf)."""


def export_image_tower(space: Space, folder: Path) -> TowerFacts:
    """Write the image tower of a space, freshly loaded on the CPU, into `folder`, checked and timed against torch.

    Weights are kept in half precision where the vectors stay the same. Raises ExportRefused with the reason if the
    exporter cannot follow the tower or its vectors differ.
    """
    import torch

    module, pictures, file = _embedding_module(space), check_pictures(space), folder / IMAGE_ONNX
    traced, axes = {PIXELS: torch.from_numpy(pictures[:2])}, {PIXELS: {0: "n"}, VECTORS: {0: "n"}}
    graph = trace(f"the image tower of {space.name}", module, traced, VECTORS, axes)
    weights = weights_of(module, graph)
    torch_s, expected = _timed(_by_torch(module), pictures)
    least: float | None = None
    for is_half, needed in ((True, MIN_HALF_COSINE), (False, IMAGE_MIN_COSINE)):
        if sum(each.nbytes for each in weights.values()) / (2 if is_half else 1) > MOST_BYTES:
            continue
        (part,) = cut(graph, halved(weights) if is_half else weights)
        file.write_bytes(part.graph)
        onnx_s, found = _timed(ImageTower(space.fingerprint, file, 1).embed, pictures)
        if (least := _least_cosine(found, expected)) >= needed:
            _write_json(folder / TRIAL_JSON, asdict(_trial(space, pictures, expected, torch_s, onnx_s)))
            settings = {"weights": "float16" if is_half else "float32"}
            return tower_facts(folder, [IMAGE_ONNX], settings, PICTURES, round(least, 7))
    file.unlink(missing_ok=True)
    if least is None:
        raise ExportRefused(f"the image tower of {space.name} is larger than the 2 GB that one ONNX file can hold")
    raise ExportRefused(
        f"the exported image tower of {space.name} has a cosine of only {least:.5f} to the original on one of "
        f"{PICTURES} pictures; at least {IMAGE_MIN_COSINE} is needed"
    )


def check_pictures(space: Space) -> NDArray[np.uint8]:
    """Make pictures of the tower's input size, flat to finely grained: uint8 [n, 3, h, w]."""
    chance = np.random.default_rng(14)
    shape = space.prepare(np.zeros((64, 64, 3), np.uint8)).shape[1:]
    pictures = []
    for number in range(PICTURES):
        cells = min(2**number, *shape)
        grid = chance.integers(0, 256, (cells, cells, 3), dtype=np.uint8)
        rows, columns = (np.arange(length) * cells // length for length in shape)
        pictures.append(grid[rows][:, columns].transpose(2, 0, 1))
    return np.stack(pictures)


def _trial(space: Space, pictures: NDArray[np.uint8], expected: NDArray[Any], torch_s: float, onnx_s: float) -> Trial:
    """Judge the exported tower: its start without torch pays, unless torch in bf16 is much quicker here."""
    cpu, runtime = processor_facts()[0], f"float32, ONNX Runtime {version('onnxruntime')}"
    seconds = {f"float32, torch {version('torch')}": round(torch_s, 5), runtime: round(onnx_s, 5)}
    if computes_bf16():
        low_s, found = _timed(space.embed, pictures)
        if not space.arithmetic.startswith("float32"):
            seconds[space.arithmetic] = round(low_s, 5)
            if low_s * MIN_CPU_SPEEDUP < onnx_s and _least_cosine(found, expected) >= MIN_COSINE:
                return Trial(False, f"{space.arithmetic} takes {low_s / onnx_s:.2f} of its time", cpu, seconds)
    why = f"{onnx_s / torch_s:.2f} of the time of float32 by torch, and no torch to import"
    return Trial(True, why, cpu, seconds)


def _timed(
    embed: Callable[[NDArray[np.uint8]], NDArray[Any]], pictures: NDArray[np.uint8]
) -> tuple[float, NDArray[Any]]:
    """Embed in two batches; returns the CPU seconds a picture of the second, and the vectors of both."""
    first = embed(pictures[:FIRST_BATCH])
    began = time.process_time()
    second = embed(pictures[FIRST_BATCH:])
    return (time.process_time() - began) / (PICTURES - FIRST_BATCH), np.concatenate([first, second])


def _least_cosine(found: NDArray[Any], expected: NDArray[Any]) -> float:
    ours, theirs = (
        each.astype(np.float64) / np.linalg.norm(each.astype(np.float64), axis=1, keepdims=True)
        for each in (found, expected)
    )
    return float(np.nan_to_num((ours * theirs).sum(1), nan=0.0).min())


def _embedding_module(space: Space) -> Any:
    """Make a module of uint8 pictures [n, 3, h, w] to unit vectors float32 [n, dim]."""
    import torch

    class Embedding(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tower, mean, std = space.image_parts()
            self.mean, self.std = (torch.tensor(each).view(3, 1, 1) for each in (mean, std))

        def forward(self, pixels: torch.Tensor) -> torch.Tensor:
            images = (pixels.float() / 255 - self.mean) / self.std
            return torch.nn.functional.normalize(features_of(self.tower, images), dim=-1)

    return Embedding().eval()


def _by_torch(module: Any) -> Callable[[NDArray[np.uint8]], NDArray[Any]]:
    import torch

    def embed(batch: NDArray[np.uint8]) -> NDArray[Any]:
        with torch.inference_mode():
            vectors: NDArray[Any] = module(torch.from_numpy(batch)).numpy()
        return vectors

    return embed
