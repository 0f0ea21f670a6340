"""Every thing of the vocabulary has a drawing that looks unlike every other."""

from __future__ import annotations

import numpy as np

from kinodex.sketch.drawings import DRAWINGS
from kinodex.sketch.scenes import COLOUR_NAMES, PLACE_NAMES, THING_NAMES, Group, Scene, draw


def test_the_vocabulary_is_as_large_as_promised() -> None:
    assert set(DRAWINGS) == set(THING_NAMES)
    assert len(THING_NAMES) >= 48
    assert len(COLOUR_NAMES) == 10
    assert len(PLACE_NAMES) == 8


def test_every_thing_looks_unlike_every_other() -> None:
    scenes = [Scene("room", groups=(Group(thing, "red", size="large"),)) for thing in THING_NAMES]
    pictures = np.stack([draw(scene, 160, 90, 0)[:, 50:110].astype(float) for scene in scenes])
    for index, picture in enumerate(pictures):
        away = np.abs(pictures - picture).mean(axis=(1, 2, 3))
        away[index] = np.inf
        assert away.min() > 3, THING_NAMES[index]
