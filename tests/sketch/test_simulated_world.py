"""The simulated model and the videos that are not there, asked by the real agents."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import numpy as np
import pytest

from kinodex.agent.ask import ask
from kinodex.agent.errors import NeedsLanguage
from kinodex.agent.protocol import ScoredSegment, Segment
from kinodex.agent.requests.tree import Decide, ScoreSegments
from kinodex.agent.variants.videotree import JudgeRelevance
from tests.sketch.simulated_world import Noise, Scenery, SimulatedModel, SimulatedQuestion, World, make_world

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


FAULTLESS = Noise(
    reward=0.0, step=0.0, floor=0.0, selection=0.0, suffices=1.0, understands=1.0, false_confidence=0.0, misled=0.0
)


def asked(world: World, noise: Noise, agent: str = "eea"):
    return asyncio.run(ask(world.question, world.environment, SimulatedModel(world, noise, 0), agent=agent))


def score(world: World, noise: Noise, start_s: float, end_s: float) -> float:
    segment = Segment(7, "film", start_s, end_s)
    request = ScoreSegments(question=world.question, videos=world.environment.videos, segments=(segment,), frames=())
    reply = asyncio.run(SimulatedModel(world, noise, 0).ask(request)).reply
    assert reply is not None
    return reply.segments[0].score


def test_rewards_fall_with_the_distance_of_the_better_border():
    world = world_of()
    assert score(world, FAULTLESS, 1000.0, 1815.0) == 100.0
    assert score(world, FAULTLESS, 1740.0, 3000.0) == pytest.approx(50.0)
    assert score(world, FAULTLESS, 1500.0, 1620.0) == pytest.approx(100 / 4.02, abs=1.0)
    assert score(world, FAULTLESS, 0.0, 3600.0) == 0.0


def test_an_answer_is_right_if_a_frame_suffices_and_is_understood_and_early_by_false_confidence_alone():
    world = world_of()
    assert asked(world, FAULTLESS).option == 2
    assert asked(world, replace(FAULTLESS, understands=0.0)).option != 2
    answer = asked(world, FAULTLESS)
    assert any(each.start_s < 1830 and each.end_s > 1800 for each in answer.evidence)

    unseen = asked(world, replace(FAULTLESS, suffices=0.0))
    assert (unseen.status, unseen.rounds) == ("budget_exhausted", 10)
    hasty = asked(world, replace(FAULTLESS, suffices=0.0, false_confidence=1.0))
    assert (hasty.status, hasty.rounds) == ("answered", 1)


def test_agents_run_unchanged_and_repeatably_and_eea_in_one_round_where_queries_match():
    world = world_of()
    for agent in ("eea", "vca", "uniform", "blind", "random"):
        first, again = (asked(world, Noise(), agent) for _ in range(2))
        assert first.option in range(4), agent
        assert (first.option, first.evidence, first.rounds) == (again.option, again.evidence, again.rounds), agent
    answer = asked(world_of(Scenery(match=12.0, fits=1.0, lookalikes=0.0)), FAULTLESS)
    assert (answer.option, answer.rounds, answer.ledger.frames) == (2, 1, 6)


def test_selection_takes_the_highest_score_undivided_first():
    world = world_of()
    segments = [Segment(number, "film", 10.0 * number, 10.0 * number + 10) for number in range(3)]
    scored = (
        ScoredSegment(segments[0], 90.0, divided=True),
        ScoredSegment(segments[1], 20.0),
        ScoredSegment(segments[2], 30.0),
    )
    request = Decide(
        question=world.question, videos=world.environment.videos, candidates=scored, frames=(), scores="reward"
    )
    reply = asyncio.run(SimulatedModel(world, FAULTLESS, 0).ask(request)).reply
    assert reply is not None
    assert (reply.action, reply.segment) == ("explore", 2)


def test_requests_about_more_than_frames_are_refused_by_name():
    world = world_of()
    request = JudgeRelevance(question=world.question, videos=world.environment.videos, notes=())
    with pytest.raises(NeedsLanguage, match="cannot answer JudgeRelevance; simulate agents that look at frames"):
        asyncio.run(SimulatedModel(world, FAULTLESS, 0).ask(request))
