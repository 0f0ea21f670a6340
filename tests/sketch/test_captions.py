"""Claims about scenes, their truth and wordings, and what is held out of training."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np

from kinodex.sketch.scenes import COLOUR_NAMES, PLACE_NAMES, THING_NAMES, Group, Scene, TitleCard
from tests.sketch.captions import (
    SEVERAL,
    Claim,
    GroupClaim,
    altered,
    claim_about,
    full_claim,
    held_out,
    plain_wording,
    random_picture,
    truth,
    wording,
)
from tests.sketch.vocabulary import plural, with_article


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


def test_words() -> None:
    assert [plural(noun) for noun in ("bus", "fish", "boat", "kitty")] == ["buses", "fish", "boats", "kitties"]
    assert with_article("apple") == "an apple" and with_article("red scissors") == "red scissors"
    scene = Scene("snow", True, (Group("house", "red"), Group("bus", "blue", 2)))
    assert plain_wording(full_claim(scene)) == "a red house and two blue buses in the snow at night"


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
