"""Degrade images of scenes as in practice: by a codec, a JPEG, a fade, at the model's own size."""

from __future__ import annotations

import io
from random import Random

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from jobs.synthetic.world.scene import Scene, TitleCard, draw


def photograph(scene: Scene | TitleCard, seed: int, side_px: int, *, worn: bool = True) -> NDArray[np.uint8]:
    """Draw a scene wide, store it as JPEG and squash it to a square: uint8 [side, side, 3].

    `worn` varies the size, the JPEG quality and the brightness (a fade) at random, for training.
    """
    chance = Random(seed)
    width_px = chance.choice((320, 400, 512)) if worn else 512
    pixels = draw(scene, width_px, width_px * 9 // 16, seed)
    if worn:
        light = chance.uniform(0.35, 1.0) if chance.random() < 0.2 else chance.uniform(0.9, 1.1)
        pixels = np.clip(pixels * light, 0, 255).astype(np.uint8)
    stored = io.BytesIO()
    Image.fromarray(pixels).save(stored, "JPEG", quality=chance.randint(55, 92) if worn else 85)
    with Image.open(stored) as picture:
        return np.asarray(picture.resize((side_px, side_px), Image.Resampling.BICUBIC, reducing_gap=3.0))
