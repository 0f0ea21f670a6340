"""Combinations that are held out of training, and never in its scenes."""

from __future__ import annotations

from random import Random

import numpy as np

from kinodex.sketch.scenes import COLOUR_NAMES, PLACE_NAMES, THING_NAMES, Scene
from tests.sketch.captions import held_out, random_picture


def test_held_out_combinations_are_never_in_training_pictures() -> None:
    chance = Random(2)
    for _ in range(1000):
        scene = random_picture(chance)
        for group in scene.groups if isinstance(scene, Scene) else ():
            assert isinstance(scene, Scene) and not held_out(group.thing, group.colour, scene.place)
    combinations = [(thing, colour, place) for thing in THING_NAMES for colour in COLOUR_NAMES for place in PLACE_NAMES]
    assert 0.08 < np.mean([held_out(*combination) for combination in combinations]) < 0.1
    assert {thing for thing, *rest in combinations if held_out(thing, *rest)} == set(THING_NAMES)
