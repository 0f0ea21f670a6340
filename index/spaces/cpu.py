"""An exported image tower, run by ONNX Runtime on this machine's CPU: no torch, no open_clip."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kinodex.index.spaces.onnx_runtime import import_onnxruntime, open_session
from kinodex.index.spaces.towers import Fingerprint, read_whole

if TYPE_CHECKING:
    from PIL.Image import Image

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
    def open(cls, folder: Path) -> ImageTower:
        """Open the image tower of a folder; raises TowersDamaged, or ModuleNotFoundError without ONNX Runtime."""
        space, _ = read_whole(folder, "image")
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
        """Compute with so many threads for each call of `embed` within this block."""
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


@dataclass(frozen=True, slots=True)
class PictureFit:
    """Size of a tower's pictures and how others are brought to it, as open_clip's settings say it.

    `mode` "shortest" scales the shortest side and cuts evenly, "longest" scales the longest side and fills with
    `fill`, "squash" scales both. (pipeline/images.py does the same to frames; a room knows nothing of another.)
    """

    height_px: int
    width_px: int
    mode: str
    is_bilinear: bool
    fill: int

    @classmethod
    def of(cls, preprocess: str) -> PictureFit:
        """Read open_clip's preprocessing settings, as a fingerprint holds them in JSON."""
        settings = json.loads(preprocess)
        size = settings.get("size", 224)
        height_px, width_px = (size[0], size[-1]) if isinstance(size, Sequence) else (size, size)
        mode = settings.get("resize_mode") or "shortest"
        # Where it cuts to a size that is not square, open_clip leaves the interpolation at its default.
        follows = height_px == width_px or mode != "shortest"
        is_bilinear = settings.get("interpolation") == "bilinear" and follows
        return cls(height_px, width_px, mode, is_bilinear, settings.get("fill_color") or 0)

    def prepare(self, rgb: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Bring a picture [H, W, 3] to size, as [3, height_px, width_px]."""
        from PIL import Image

        picture = Image.fromarray(rgb)
        size = self._scaled_size(*picture.size)
        if size != picture.size:
            resampling = Image.Resampling.BILINEAR if self.is_bilinear else Image.Resampling.BICUBIC
            picture = picture.resize(size, resampling)
        return np.ascontiguousarray(np.asarray(self._cut_or_filled(picture)).transpose(2, 0, 1))

    def _scaled_size(self, width: int, height: int) -> tuple[int, int]:
        """Compute width and height after scaling, with open_clip's own rounding."""
        if self.mode == "squash":
            return self.width_px, self.height_px
        if self.mode == "shortest" and self.width_px == self.height_px:
            side = self.width_px
            return (side, int(side * height / width)) if width <= height else (int(side * width / height), side)
        ratios = height / self.height_px, width / self.width_px
        ratio = max(ratios) if self.mode == "longest" else min(ratios)
        return max(1, round(width / ratio)), max(1, round(height / ratio))

    def _cut_or_filled(self, picture: Image) -> Image:
        from PIL import Image

        width, height = max(picture.width, self.width_px), max(picture.height, self.height_px)
        if (width, height) != picture.size:
            filled = Image.new("RGB", (width, height), (self.fill,) * 3)
            filled.paste(picture, ((width - picture.width) // 2, (height - picture.height) // 2))
            picture = filled
        left, top = round((width - self.width_px) / 2), round((height - self.height_px) / 2)
        return picture.crop((left, top, left + self.width_px, top + self.height_px))
