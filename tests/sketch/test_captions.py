"""Claims about a scene are true of it and worded; near misses are mostly false."""

from __future__ import annotations

from random import Random

import numpy as np

from kinodex.sketch.scenes import Group, Scene
from tests.sketch.captions import altered, claim_about, full_claim, plain_wording, random_picture, truth, wording
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
    assert plural("bus") == "buses" and plural("fish") == "fish" and plural("boat") == "boats"
    assert with_article("apple") == "an apple" and with_article("red scissors") == "red scissors"
    scene = Scene("snow", True, (Group("house", "red"), Group("bus", "blue", 2)))
    assert plain_wording(full_claim(scene)) == "a red house and two blue buses in the snow at night"
