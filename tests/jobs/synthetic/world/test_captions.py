"""The sketch world: the vocabulary, the pictures, and the truth of captions."""

from __future__ import annotations

from itertools import pairwise
from random import Random
from typing import Any

import numpy as np

from jobs.synthetic.world.captions import altered, claim_about, full_claim, plain_wording, wording
from jobs.synthetic.world.claims import SEVERAL, Claim, GroupClaim, truth
from jobs.synthetic.world.random_scenes import held_out, random_picture, random_scene
from jobs.synthetic.world.scene import Group, Scene, TitleCard, draw, lay_out
from jobs.synthetic.world.sprites import DRAWINGS
from jobs.synthetic.world.vocabulary import COLOUR_NAMES, PLACE_NAMES, THING_NAMES, plural, with_article


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


def test_claims_about_a_scene_are_true_of_it_and_worded() -> None:
    chance = Random(0)
    for _ in range(500):
        scene = random_picture(chance)
        claims = [claim_about(scene, chance), full_claim(scene)]
        assert truth(claims, [scene]).all(), (scene, claims)
        assert all(wording(claim, chance).strip() for claim in claims)


def test_near_misses_are_mostly_false() -> None:
    chance = Random(1)
    scenes = [random_picture(chance) for _ in range(400)]
    false = [not truth([altered(claim_about(scene, chance), chance)], [scene])[0, 0] for scene in scenes]
    assert np.mean(false) > 0.75


def test_truth_of_claims() -> None:
    boats = Scene("sea", True, (Group("boat", "red", 3, position="left"), Group("car", "blue", position="right")))
    card = TitleCard("HARBOUR")

    def true(*groups: GroupClaim, scene: Scene | TitleCard = boats, **facts: Any) -> bool:
        return bool(truth([Claim(groups=groups, **facts)], [scene])[0, 0])

    assert true(GroupClaim("boat")) and true(GroupClaim("vehicle", "red")) and true(GroupClaim(colour="blue"))
    assert true(GroupClaim("boat", "red", 3), GroupClaim("car", position="right"), place="sea", night=True)
    assert true(GroupClaim("boat", count=SEVERAL)) and not true(GroupClaim("car", count=SEVERAL))
    assert (
        not true(GroupClaim("boat", "blue"))
        and not true(GroupClaim("boat", count=2))
        and not true(GroupClaim("animal"))
    )
    assert not true(GroupClaim("boat"), place="snow") and not true(empty=True) and not true(word="HARBOUR")
    assert true(scene=card, word="HARBOUR") and true(scene=card, word="*") and not true(scene=card, word="ECHO")
    assert true(scene=Scene("sea"), empty=True, place="sea")


def test_held_out_combinations_are_never_in_training_pictures() -> None:
    chance = Random(2)
    for _ in range(1000):
        scene = random_picture(chance)
        for group in scene.groups if isinstance(scene, Scene) else ():
            assert isinstance(scene, Scene) and not held_out(group.thing, group.colour, scene.place)
    combinations = [(thing, colour, place) for thing in THING_NAMES for colour in COLOUR_NAMES for place in PLACE_NAMES]
    assert 0.08 < np.mean([held_out(*combination) for combination in combinations]) < 0.1
    assert {thing for thing, *rest in combinations if held_out(thing, *rest)} == set(THING_NAMES)


def test_words() -> None:
    assert plural("bus") == "buses" and plural("fish") == "fish" and plural("boat") == "boats"
    assert with_article("apple") == "an apple" and with_article("red scissors") == "red scissors"
    scene = Scene("snow", True, (Group("house", "red"), Group("bus", "blue", 2)))
    assert plain_wording(full_claim(scene)) == "a red house and two blue buses in the snow at night"
