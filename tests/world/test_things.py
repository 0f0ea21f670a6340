"""Pen, things, places and scenes of the sketch world."""

from __future__ import annotations

from itertools import combinations, pairwise
from random import Random

import numpy as np
import pytest

from tests.sketch.captions import random_scene
from tests.world.sketch.places import draw_place
from tests.world.sketch.scenes import PLACE_NAMES, THING_NAMES, Group, Scene, draw, lay_out
from tests.world.sketch.things import COLOUR_RGB, PAINTS, THINGS, Pen, paint_of

RED = (214, 32, 38)


def covered(pen: Pen) -> float:
    """Share of the sheet that is drawn on."""
    return float((np.asarray(pen.sheet)[..., 3] > 0).mean())


def test_shapes_cover_their_share_of_a_sheet_of_any_size() -> None:
    def share(draw, side_px: int = 100) -> float:
        pen = Pen("red", side_px)
        draw(pen)
        return covered(pen)

    for side_px in (100, 320):
        for shape, expected in (
            (lambda pen: pen.box(RED, 0, 0, 50, 50), 0.25),
            (lambda pen: pen.dot(RED, 50, 50, 20), np.pi * 0.04),
            (lambda pen: pen.poly(RED, 0, 0, 100, 0, 0, 100), 0.5),
            (lambda pen: pen.pie(RED, 0, 0, 100, 100, 0, 90), np.pi / 16),
        ):
            assert share(shape, side_px) == pytest.approx(expected, abs=0.02)
    assert 0 < share(lambda pen: pen.ring(RED, 50, 50, 40, 5)) < share(lambda pen: pen.ring(RED, 50, 50, 40, 40))
    pen = Pen("red", 100)
    pen.box(RED, 0, 0, 100, 100)
    pen.dot(PAINTS["hole"], 50, 50, 20)
    assert covered(pen) == pytest.approx(1 - np.pi * 0.04, abs=0.01), "a hole is transparent again"
    assert pen.sheet.getpixel((5, 5)) == (*RED, 255)
    for colour in COLOUR_RGB:
        body, shade, light = map(sum, paint_of(colour))
        assert light > body and (shade < body) == (colour != "black"), colour


def test_every_thing_looks_unlike_every_other() -> None:
    assert len(THINGS) == 65
    scenes = [Scene("room", groups=(Group(thing, "red", size="large"),)) for thing in THING_NAMES]
    pictures = np.stack([draw(scene, 160, 90, 0)[:, 50:110].astype(float) for scene in scenes])
    for index, picture in enumerate(pictures):
        away = np.abs(pictures - picture).mean(axis=(1, 2, 3))
        away[index] = np.inf
        assert away.min() > 3, THING_NAMES[index]


def drawn(place: str, night: bool = False, seed: int = 0) -> np.ndarray:
    return np.asarray(draw_place(place, night, 96, 54, Random(seed))).astype(float)


def test_places_look_unlike_each_other_and_are_darker_by_night() -> None:
    places = [drawn(place) for place in PLACE_NAMES]
    assert {picture.shape for picture in places} == {(54, 96, 3)}
    assert min(np.abs(one - other).mean() for one, other in combinations(places, 2)) > 8
    for place, picture in zip(PLACE_NAMES, places, strict=True):
        assert drawn(place, night=True).mean() < 0.75 * picture.mean(), place
        assert np.array_equal(drawn(place, seed=0), picture) and not np.array_equal(drawn(place, seed=2), picture)
    scene = random_scene(Random(5))
    picture = draw(scene, 320, 180, 1)
    assert picture.shape == (180, 320, 3) and np.array_equal(picture, draw(scene, 320, 180, 1))
    assert not np.array_equal(picture, draw(scene, 320, 180, 2))


def test_colour_place_and_hour_can_be_seen() -> None:
    by_day = draw(Scene("meadow"), 160, 90, 0).mean()
    assert draw(Scene("meadow", night=True), 160, 90, 0).mean() < 0.6 * by_day
    red, blue = (
        draw(Scene("snow", groups=(Group("heart", colour, size="large"),)), 160, 90, 0).astype(int)
        for colour in ("red", "blue")
    )
    assert (red[..., 0] - blue[..., 0]).max() > 120


def test_things_of_one_scene_do_not_overlap() -> None:
    for seed in range(60):
        scene = random_scene(Random(seed))
        spans = sorted(
            (item.x - item.picture.width / 1280, item.x + item.picture.width / 1280)
            for item in lay_out(scene, 640, 360)
        )
        for (_, right), (left, _) in pairwise(spans):
            assert left >= right - 0.02, scene
