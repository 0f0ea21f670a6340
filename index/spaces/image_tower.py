"""An exported image tower, run by ONNX Runtime on this machine's CPU: no torch, no open_clip."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinodex.index.spaces.fingerprint import Fingerprint
from kinodex.index.spaces.onnx_runtime import import_onnxruntime, open_session
from kinodex.index.spaces.picture_fit import PictureFit
from kinodex.index.spaces.towers import read_whole

IMAGE_ONNX = "image.onnx"
PIXELS, VECTORS = "pixels", "vectors"
"""Names of the graph's input, uint8 [n, 3, h, w], and of its output, unit vectors float32 [n, dim]."""


class ImageTower:
    """The image tower of a space as an ONNX graph, which scales and normalises pixels itself.

    A picture has the same vector, to the bit, in a batch of any size.
    """

    device_type = "cpu"

    def __init__(self, fingerprint: Fingerprint, graph: Path, threads: int | None = None) -> None:
        """Take a graph; without a number of `threads` it computes with `OMP_NUM_THREADS`, else one a core."""
        self.fingerprint = fingerprint
        self.name = fingerprint.name
        self.dim = fingerprint.dim
        self._fit = PictureFit.of(fingerprint.preprocess)
        self._graph = graph
        of_process = int(os.environ.get("OMP_NUM_THREADS") or 0)  # which Ray sets for each of its processes
        self._threads = of_process if threads is None else threads
        self._session: Any = None
        self._lock = threading.Lock()

    @classmethod
    def open(cls, folder: Path, name: str | None = None) -> ImageTower:
        """Open the image tower of a folder, of a space called `name` or as it was exported.

        Raises TowersDamaged, or ModuleNotFoundError without ONNX Runtime.
        """
        space, _ = read_whole(folder, "image", name)
        tower = cls(space, folder / IMAGE_ONNX)
        tower.warm()
        return tower

    def warm(self) -> None:
        """Read the graph, which takes a second, before the first picture is there."""
        self._opened()

    @property
    def arithmetic(self) -> str:
        """Arithmetic that makes the vectors."""
        return f"float32, ONNX Runtime {import_onnxruntime().__version__}"

    def prepare(self, rgb: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Make the tower's input [3, h, w] of a picture [H, W, 3]: the same bytes as open_clip's own transform."""
        return self._fit.prepare(rgb)

    def embed(self, batch: NDArray[np.uint8]) -> NDArray[np.float16]:
        """Embed prepared pictures [n, 3, h, w] as unit vectors float16 [n, dim]; several threads may call it."""
        if not len(batch):
            return np.empty((0, self.dim), np.float16)
        (vectors,) = self._opened().run([VECTORS], {PIXELS: np.ascontiguousarray(batch)})
        halves: NDArray[np.float16] = np.asarray(vectors).astype(np.float16)
        return halves

    @contextmanager
    def threads(self, count: int) -> Iterator[None]:
        """Compute with this many threads for each call of `embed` within this block."""
        before = self._threads
        self._use_threads(count)
        try:
            yield
        finally:
            self._use_threads(before)

    def _use_threads(self, count: int) -> None:
        with self._lock:
            if count != self._threads:
                self._threads, self._session = count, None

    def _opened(self) -> Any:
        with self._lock:
            if self._session is None:
                self._session = open_session(self._graph.read_bytes(), self._graph.parent, self._threads)
            return self._session
