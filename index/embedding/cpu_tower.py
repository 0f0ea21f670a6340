"""The image tower of a space on a CPU: torch's own, until ONNX Runtime turns out to be quicker with the same vectors.

Where bf16 does not pay, ONNX Runtime embeds two to three times as many pictures a second (docs/measured.md). So at the
first batch the tower's exported graph is tried on it, if one is at hand: in the user's cache, or with the library.
Else, once torch has computed for a minute, so that the export pays, another process exports the graph into the cache:
the work at hand goes on with it, and the next run begins with it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from index.embedding.embedders import joined_arithmetic
from index.embedding.export_to_cache import ExportBusy, export_in_child
from index.embedding.portable.image_tower import IMAGE_ONNX, ImageTower
from index.embedding.portable.tower_files import find_whole
from index.embedding.precision import MIN_COSINE, TRIAL_IMAGES, torch_threads
from index.embedding.tower_cache import cached_place
from index.errors import StorageError, TowersDamaged

if TYPE_CHECKING:
    from index.embedding.embedders import ImageEmbedder
    from index.embedding.space import Space

FindTower = Callable[[], Path | None]
"""Finds the folder of an exported image tower; may raise TowersDamaged or StorageError."""
TRIAL_ROUNDS = 2


@dataclass(frozen=True, slots=True)
class TrialRule:
    """When a graph is tried, and when it is taken."""

    min_parameters: int = 3_000_000
    """A smaller tower, the built-in space's, costs a tenth of decoding: it stays the same on every machine."""
    min_speedup: float = 1.2
    """It wins two to three times, or loses: noise does not decide."""
    min_cosine: float = MIN_COSINE
    pictures: int = 8
    export_after_s: float = 60.0
    """Seconds of torch's work before an export, which takes 15 to 35 seconds of one core."""


class CpuTower:
    """Image tower of a space on the CPU, which measures and chooses its arithmetic. Several threads may use it."""

    device_type = "cpu"

    def __init__(self, space: Space, rule: TrialRule | None = None) -> None:
        self.fingerprint = space.fingerprint
        self.name = space.name
        self.dim = space.dim
        self._rule = rule or TrialRule()
        self._space: Space | None = space
        self._tower: ImageEmbedder = space
        self._finders: list[FindTower] = [self._find_cached]
        self._threads: int | None = None
        self._lock = threading.Lock()
        self._torch_s = 0.0
        self._next_look_s: float | None = None
        self._is_exporting = False
        self._used: dict[str, None] = {}
        self._notes: list[str] = []

    @property
    def arithmetic(self) -> str:
        """Each arithmetic that made vectors so far, in order; at the end a reason why a graph could not be used."""
        with self._lock:
            return joined_arithmetic([*self._used, *self._notes])

    def offer(self, find: FindTower) -> None:
        """Look for an exported tower also in the folder that `find` returns, if it is called before the first batch."""
        self._finders.append(find)

    @contextmanager
    def threads(self, count: int) -> Iterator[None]:
        """Compute with so many threads within this block, in whatever arithmetic."""
        graph = self._tower.threads(count) if isinstance(self._tower, ImageTower) else nullcontext()
        before, self._threads = self._threads, count
        try:
            with torch_threads(count), graph:
                yield
        finally:
            self._threads = before

    def prepare(self, rgb: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Make the model's input [3, h, w] of one picture [H, W, 3]; the same bytes in every arithmetic."""
        return self._tower.prepare(rgb)

    def embed(self, batch: NDArray[np.uint8]) -> NDArray[np.float16]:
        """Embed prepared pictures [n, 3, h, w] as unit vectors float16 [n, dim]."""
        if not len(batch):
            return np.empty((0, self.dim), np.float16)
        if self._space is not None:
            self._look_for_graph(batch)
        tower, began = self._tower, time.perf_counter()
        vectors = tower.embed(batch)
        with self._lock:
            self._torch_s += time.perf_counter() - began
            self._used[tower.arithmetic] = None
        return vectors

    def _look_for_graph(self, batch: NDArray[np.uint8]) -> None:
        """Try a graph at the first batch; after so much work of torch export one, and try that."""
        with self._lock:
            space, is_first = self._space, self._next_look_s is None
            if space is None or self._is_exporting or self._torch_s < (self._next_look_s or 0.0):
                return
            self._next_look_s = self._torch_s + self._rule.export_after_s
            if is_first and self._is_quick_already(space, batch):
                self._space = None
                return
            found = self._find()
            if found is not None:
                self._try(found, space, batch)
                return
            self._is_exporting = not is_first
        if not is_first:
            self._export_and_try(space, batch)

    def _is_quick_already(self, space: Space, batch: NDArray[np.uint8]) -> bool:
        if sum(each.numel() for each in space.image_parts()[0].parameters()) < self._rule.min_parameters:
            return True
        space.embed(batch[:TRIAL_IMAGES])  # which chooses torch's own arithmetic
        return not space.arithmetic.startswith("float32")

    def _export_and_try(self, space: Space, batch: NDArray[np.uint8]) -> None:
        """Export the graph while other threads go on with torch, and try it."""
        try:
            problem = export_in_child(self.name, self.fingerprint.digest)
        except ExportBusy:  # the next look may find what the other process makes
            with self._lock:
                self._is_exporting = False
            return
        with self._lock:
            found = None if problem else self._find()
            if found is not None:
                self._try(found, space, batch)
                return
            self._space = None
            self._notes.append(f"not exported to ONNX Runtime: {problem or 'the cache does not hold it'}")

    def _find(self) -> Path | None:
        """Find the folder of an exported tower of this space; one that cannot be read is none, and said."""
        for find in self._finders:
            try:
                folder = find()
                whole = find_whole(folder, "image") if folder else None
            except (TowersDamaged, StorageError) as error:
                self._notes.append(f"an exported tower was left out: {error}")
                continue
            if whole is not None and whole[0].digest == self.fingerprint.digest:
                return folder
        return None

    def _find_cached(self) -> Path:
        return cached_place(self.fingerprint.digest, "image")

    def _try(self, folder: Path, space: Space, batch: NDArray[np.uint8]) -> None:
        """Take the graph in `folder` if it is quicker than torch on this batch and gives the same vectors."""
        self._space = None
        try:
            graph = ImageTower(self.fingerprint, folder / IMAGE_ONNX, self._threads or _thread_count())
            speedup, cosine = compare(space, graph, batch[: self._rule.pictures])
        except Exception as error:  # a package that is missing or a graph that it cannot run say so in a hundred ways
            self._notes.append(f"ONNX Runtime was left out: {str(error).splitlines()[0][:200]}")
            return
        if cosine < self._rule.min_cosine:
            self._notes.append(f"ONNX Runtime was left out: a cosine of {cosine:.5f} to torch's vectors")
        elif speedup >= self._rule.min_speedup:
            self._tower = graph


def compare(space: Space, graph: ImageTower, batch: NDArray[np.uint8]) -> tuple[float, float]:
    """Measure how many times as quick as torch a graph embeds a batch [n, 3, h, w], and the least cosine of a picture.

    The faster of two interleaved rounds counts, so the first may warm up.
    """
    seconds: dict[ImageEmbedder, list[float]] = {space: [], graph: []}
    vectors = {}
    for _ in range(TRIAL_ROUNDS):
        for tower, times in seconds.items():
            began = time.perf_counter()
            vectors[tower] = tower.embed(batch).astype(np.float64)
            times.append(time.perf_counter() - began)
    ours, theirs = (each / np.linalg.norm(each, axis=1, keepdims=True) for each in (vectors[space], vectors[graph]))
    return min(seconds[space]) / min(seconds[graph]), float((ours * theirs).sum(1).min())


def _thread_count() -> int:
    import torch

    return int(torch.get_num_threads())
