"""Images for training are square, follow from their seed, and vary in brightness only where they are worn."""

from __future__ import annotations

import numpy as np

from kinodex.sketch.scenes import Group, Scene
from tests.sketch.train import photograph

SCENE = Scene("sea", groups=(Group("boat", "red", size="large"),))


def test_an_image_is_square_and_follows_from_its_seed() -> None:
    image = photograph(SCENE, 3, 64)
    assert image.shape == (64, 64, 3)
    assert image.dtype == np.uint8
    assert np.array_equal(image, photograph(SCENE, 3, 64))


def test_only_worn_images_vary_in_brightness() -> None:
    worn = [photograph(SCENE, seed, 32).mean() for seed in range(30)]
    plain = [photograph(SCENE, seed, 32, worn=False).mean() for seed in range(30)]
    assert max(worn) - min(worn) > 40
    assert max(plain) - min(plain) < 25
