"""Preprocess images for an open_clip model without open_clip: its preprocessing settings, carried out by PIL.

A process that only decodes need not load torch for this. Pixels stay whole bytes: `Space.embed` scales them to
0..1 and normalises them, on its own device.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Fit = Literal["shortest", "longest", "squash"]


@dataclass(frozen=True, slots=True)
class ModelInput:
    """A function from an image to a model's input; the same bytes as open_clip's transform makes.

    `fit` is how an image comes to `height_px` x `width_px`: its shortest side is scaled and the rest cut off
    evenly, its longest side is scaled and the rest filled with `fill` (0 to 255), or it is squashed.
    """

    height_px: int
    width_px: int
    fit: Fit = "shortest"
    resampling: Literal["bicubic", "bilinear"] = "bicubic"
    fill: int = 0

    @classmethod
    def from_json(cls, text: str) -> ModelInput:
        """Read an open_clip preprocessing configuration, as a space's fingerprint holds it."""
        settings = json.loads(text)
        size = settings.get("size", 224)
        height_px, width_px = (size[0], size[-1]) if isinstance(size, Sequence) else (size, size)
        bilinear = settings.get("interpolation") == "bilinear"
        return cls(
            height_px,
            width_px,
            settings.get("resize_mode") or "shortest",
            "bilinear" if bilinear else "bicubic",
            settings.get("fill_color") or 0,
        )

    @property
    def side_px(self) -> int:
        """Shortest side that an image should have, so that nothing is enlarged."""
        return max(self.height_px, self.width_px)

    def __call__(self, rgb: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Make the model's input `[3, height_px, width_px]` of an image `[H, W, 3]`; not normalised."""
        image = Image.fromarray(rgb)
        width_px, height_px = self.scaled_size(image.width, image.height)
        if (width_px, height_px) != image.size:
            resampling = Image.Resampling.BILINEAR if self.is_bilinear else Image.Resampling.BICUBIC
            image = image.resize((width_px, height_px), resampling)
        if (width_px, height_px) != (self.width_px, self.height_px):
            image = self._crop_or_pad(image)
        return np.ascontiguousarray(np.asarray(image).transpose(2, 0, 1))

    @property
    def is_bilinear(self) -> bool:
        """True if the scaling is bilinear; it is bicubic otherwise."""
        # open_clip leaves the resampling at its default where it cuts to a model input that is not square.
        is_square = self.height_px == self.width_px
        return self.resampling == "bilinear" and (is_square or self.fit != "shortest")

    def scaled_size(self, width: int, height: int) -> tuple[int, int]:
        """Compute width and height in px after scaling, before anything is cropped or filled."""
        if self.fit == "squash":
            return self.width_px, self.height_px
        if self.fit == "shortest" and self.width_px == self.height_px:
            side = self.width_px
            return (side, int(side * height / width)) if width <= height else (int(side * width / height), side)
        ratios = height / self.height_px, width / self.width_px
        ratio = max(ratios) if self.fit == "longest" else min(ratios)
        return max(1, round(width / ratio)), max(1, round(height / ratio))

    def _crop_or_pad(self, image: Image.Image) -> Image.Image:
        """Crop or fill to size, evenly on both sides; of an odd number the larger half is filled right and below."""
        width, height = max(image.width, self.width_px), max(image.height, self.height_px)
        if (width, height) != image.size:
            filled = Image.new("RGB", (width, height), (self.fill,) * 3)
            filled.paste(image, ((width - image.width) // 2, (height - image.height) // 2))
            image = filled
        left, top = round((width - self.width_px) / 2), round((height - self.height_px) / 2)
        return image.crop((left, top, left + self.width_px, top + self.height_px))
