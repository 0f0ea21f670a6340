"""Pen, things, places and scenes of the sketch world."""

from __future__ import annotations

from itertools import combinations, pairwise
from random import Random

import numpy as np
import pytest

from kinodex.sketch.drawings import COLOUR_RGB, DRAWINGS, Pen, draw_place, paint_of, star_points
from kinodex.sketch.scenes import COLOUR_NAMES, PLACE_NAMES, THING_NAMES, Group, Scene, draw, lay_out
from tests.sketch.captions import random_scene
from tests.sketch.vocabulary import plural, with_article

RED = (214, 32, 38)


def covered(pen: Pen) -> float:
    """Share of the sheet that is drawn on."""
    return float((np.asarray(pen.sheet)[..., 3] > 0).mean())


@pytest.mark.parametrize("side_px", [100, 320])
def test_shapes_cover_their_share_of_a_sheet_of_any_size(side_px: int) -> None:
    def share(draw) -> float:
        pen = Pen("red", side_px)
        draw(pen)
        return covered(pen)

    assert share(lambda pen: pen.box(RED, 0, 0, 50, 50)) == pytest.approx(0.25, abs=0.02)
    assert share(lambda pen: pen.dot(RED, 50, 50, 20)) == pytest.approx(np.pi * 0.04, abs=0.01)
    assert share(lambda pen: pen.poly(RED, (0, 0), (100, 0), (0, 100))) == pytest.approx(0.5, abs=0.02)
    assert share(lambda pen: pen.pie(RED, (0, 0, 100, 100), 0, 90)) == pytest.approx(np.pi / 16, abs=0.02)
    ring, disc = (share(lambda pen, width=width: pen.ring(RED, 50, 50, 40, width)) for width in (5, 40))
    assert 0 < ring < disc


def test_a_hole_is_transparent_again() -> None:
    pen = Pen("red", 100)
    pen.box(RED, 0, 0, 100, 100)
    pen.erase(50, 50, 20)
    assert covered(pen) == pytest.approx(1 - np.pi * 0.04, abs=0.01)
    assert pen.sheet.getpixel((5, 5)) == (*RED, 255)


def test_shade_is_darker_and_light_is_lighter_but_for_black() -> None:
    for colour in COLOUR_RGB:
        body, shade, light = map(sum, paint_of(colour))
        assert light > body and (shade < body) == (colour != "black")


def test_a_star_begins_at_the_top_and_alternates() -> None:
    corners = star_points(50, 50, 40, 20, 5)
    assert len(corners) == 10
    assert corners[0] == pytest.approx((50, 10))
    radii = [np.hypot(x - 50, y - 50) for x, y in corners]
    assert radii == pytest.approx([40, 20] * 5)


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


def drawn(place: str, night: bool = False, seed: int = 0) -> np.ndarray:
    return np.asarray(draw_place(place, night, 96, 54, Random(seed))).astype(float)


def test_places_look_unlike_each_other() -> None:
    places = [drawn(place) for place in PLACE_NAMES]
    assert {picture.shape for picture in places} == {(54, 96, 3)}
    assert min(np.abs(one - other).mean() for one, other in combinations(places, 2)) > 8


@pytest.mark.parametrize("place", PLACE_NAMES)
def test_a_place_is_darker_by_night_and_varies_with_the_seed(place: str) -> None:
    assert drawn(place, night=True).mean() < 0.75 * drawn(place).mean()
    assert np.array_equal(drawn(place, seed=1), drawn(place, seed=1))
    assert not np.array_equal(drawn(place, seed=1), drawn(place, seed=2))


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


def test_plurals_and_articles() -> None:
    assert [plural(noun) for noun in ("bus", "fish", "boat", "kitty")] == ["buses", "fish", "boats", "kitties"]
    assert with_article("apple") == "an apple"
    assert with_article("red boat") == "a red boat"
    assert with_article("red scissors") == "red scissors"
