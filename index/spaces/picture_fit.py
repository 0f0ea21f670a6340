"""Pictures brought to the size of a tower's input, as open_clip's settings say it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from PIL.Image import Image


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
