"""The simulated model and the videos that are not there, asked by the real agents."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kinodex.agent.matches import SIMILARITY_MIDPOINT
from tests.sketch.simulated_world import Scenery, SimulatedQuestion, World, make_world

SOUGHT = SimulatedQuestion("q", "film", 3600.0, ((1800.0, 1830.0),), option=2)


PLAIN = Scenery(match=6.0, fits=1.0, lookalikes=0.0)


def world_of(scenery: Scenery = PLAIN, spec: SimulatedQuestion = SOUGHT, seed: int = 0) -> World:
    return make_world(spec, scenery, seed)


def test_evidence_stands_out_for_queries_that_fit_and_for_no_other():
    world = world_of()
    assert np.flatnonzero(world.evidence).tolist() == list(range(1800, 1830))
    deviations = world.environment.deviations(list(world.first), "film")
    heights = dict(zip(world.first, deviations[1800:1830].mean(axis=0), strict=True))
    assert heights["subject of q"] > 3.5
    assert heights["option 2 of q"] > 3.5
    assert max(abs(heights[f"option {wrong} of q"]) for wrong in (0, 1, 3)) < 2.0


def test_the_calibration_of_a_search_can_be_changed():
    environment = world_of().environment
    usual = environment.search(["subject of q"], "film", 1, 8.0)[0]
    environment.similarity_midpoint = 3.0
    eased = environment.search(["subject of q"], "film", 1, 8.0)[0]
    assert eased.time_s == usual.time_s
    deviation = SIMILARITY_MIDPOINT * usual.similarity / (1 - usual.similarity)
    assert eased.similarity == pytest.approx(deviation / (deviation + 3.0))


def test_unrelated_frames_are_noise_of_deviation_one_that_lasts_for_a_shot():
    world = world_of(Scenery(match=0.0, lookalikes=0.0))
    noise = world.environment.deviations(["subject of q"], "film")[:, 0]
    assert np.std(noise) == pytest.approx(1.0, abs=0.15)
    assert np.corrcoef(noise[:-1], noise[1:])[0, 1] > 0.5
    assert abs(np.corrcoef(noise[:-300], noise[300:])[0, 1]) < 0.2


def test_lookalikes_match_like_evidence_but_are_not():
    world = world_of(Scenery(match=8.0, fits=0.0, lookalikes=40.0))
    best = world.environment.deviations(list(world.first), "film").max(axis=1)
    assert world.lookalike.max() > 20
    assert best[world.lookalike > 0].mean() > 4.0
    assert not (world.evidence & (world.lookalike > 0)).any()


def test_a_world_is_the_same_for_the_same_seed_only():
    vectors = [world_of(seed=seed).environment.vectors("film").vectors for seed in (0, 0, 1)]
    assert np.array_equal(vectors[0], vectors[1])
    assert not np.array_equal(vectors[0], vectors[2])


def test_evidence_between_two_frames_is_in_the_frame_on_screen():
    world = world_of(spec=replace(SOUGHT, evidence=((0.2, 0.6), (3599.5, 3600.0))))
    assert np.flatnonzero(world.evidence).tolist() == [0, 3599]
