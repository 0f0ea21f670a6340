"""A scene is drawn the same from one seed; colour, place and hour show, and things do not overlap."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import numpy as np

from kinodex.sketch.scenes import Group, Scene, draw, lay_out
from tests.sketch.captions import random_scene


def test_pictures_follow_from_the_seed() -> None:
    scene = random_scene(Random(5))
    assert np.array_equal(draw(scene, 320, 180, 1), draw(scene, 320, 180, 1))
    assert not np.array_equal(draw(scene, 320, 180, 1), draw(scene, 320, 180, 2))
    assert draw(scene, 320, 180, 1).shape == (180, 320, 3)


def test_colour_place_and_hour_can_be_seen() -> None:
    by_day = draw(Scene("meadow"), 160, 90, 0).mean()
    assert draw(Scene("meadow", night=True), 160, 90, 0).mean() < 0.6 * by_day
    red, blue = (
        draw(Scene("snow", groups=(Group("heart", colour, size="large"),)), 160, 90, 0).astype(int)
        for colour in ("red", "blue")
    )
    assert (red[..., 0] - blue[..., 0]).max() > 120


def test_things_of_one_scene_do_not_overlap() -> None:
    for seed in range(200):
        scene = random_scene(Random(seed))
        spans = sorted(
            (item.x - item.picture.width / 1280, item.x + item.picture.width / 1280)
            for item in lay_out(scene, 640, 360)
        )
        for (_, right), (left, _) in pairwise(spans):
            assert left >= right - 0.02, scene
