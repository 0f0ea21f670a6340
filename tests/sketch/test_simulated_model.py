"""The simulated model: rewards, answers and choices, with set noise."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import numpy as np
import pytest

from kinodex.agent.ask import ask
from kinodex.agent.errors import NeedsLanguage
from kinodex.agent.protocol import ScoredSegment, Segment
from kinodex.agent.requests.answer import AnswerFrames
from kinodex.agent.requests.tree import Decide, ScoreSegments
from kinodex.agent.variants.vca import VCAParameters
from kinodex.agent.variants.videotree import JudgeRelevance
from tests.sketch.simulated_world import Noise, Scenery, SimulatedModel, SimulatedQuestion, World, make_world

SOUGHT = SimulatedQuestion("q", "film", 3600.0, ((1800.0, 1830.0),), option=2)


PLAIN = Scenery(match=6.0, fits=1.0, lookalikes=0.0)


FAULTLESS = Noise(
    reward=0.0, step=0.0, floor=0.0, selection=0.0, suffices=1.0, understands=1.0, false_confidence=0.0, misled=0.0
)


def world_of(scenery: Scenery = PLAIN, spec: SimulatedQuestion = SOUGHT, seed: int = 0) -> World:
    return make_world(spec, scenery, seed)


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


def test_rewards_have_bias_noise_steps_and_a_floor():
    world = world_of()
    assert score(world, replace(FAULTLESS, bias=-30.0), 1000.0, 1815.0) == 70.0
    assert score(world, replace(FAULTLESS, floor=60.0), 1740.0, 3000.0) == 0.0
    assert score(world, replace(FAULTLESS, step=25.0), 1500.0, 1635.0) == 25.0
    noisy = [score(world, replace(FAULTLESS, reward=10.0), 1740.0, end_s) for end_s in range(2000, 2200)]
    assert np.std(noisy) == pytest.approx(10.0, rel=0.2)
    assert noisy[0] == score(world, replace(FAULTLESS, reward=10.0), 1740.0, 2000.0)


@pytest.mark.parametrize(("chance", "reward"), [(1.0, 100.0), (0.0, 20.0)])
def test_a_lookalike_is_rewarded_if_it_fools_the_model(chance, reward):
    world = world_of(Scenery(lookalikes=40.0))
    far = (world.lookalike > 0) & (world.distance_s > 300)
    at = float(np.flatnonzero(far)[0])
    got = score(world, replace(FAULTLESS, fooled=chance), at, 3600.0)
    assert got == reward if chance else got < reward


def test_an_answer_is_right_if_a_frame_suffices_and_is_understood():
    world = world_of()
    assert asked(world, FAULTLESS).option == 2
    assert asked(world, replace(FAULTLESS, understands=0.0)).option != 2
    answer = asked(world, FAULTLESS)
    assert any(each.start_s < 1830 and each.end_s > 1800 for each in answer.evidence)


def test_nothing_is_answered_before_the_end_without_evidence_or_false_confidence():
    world = world_of()
    unseen = asked(world, replace(FAULTLESS, suffices=0.0))
    assert (unseen.status, unseen.rounds) == ("budget_exhausted", 10)
    hasty = asked(world, replace(FAULTLESS, suffices=0.0, false_confidence=1.0))
    assert (hasty.status, hasty.rounds) == ("answered", 1)


def test_a_lookalike_that_fools_can_mislead_into_a_guess():
    world = world_of(Scenery(match=8.0, fits=0.0, lookalikes=20.0))
    noise = replace(FAULTLESS, suffices=0.0, fooled=1.0, misled=1.0)
    assert (asked(world, noise).status, asked(world, noise).rounds) == ("answered", 1)
    assert asked(world, replace(noise, fooled=0.0)).rounds == 10


def test_guesses_are_by_chance():
    noise = replace(FAULTLESS, suffices=0.0)
    right = []
    for number in range(200):
        world = world_of(spec=replace(SOUGHT, question_id=f"q{number}", duration_s=60.0, evidence=((5.0, 9.0),)))
        request = AnswerFrames(question=world.question, videos=world.environment.videos, frames=())
        reply = asyncio.run(SimulatedModel(world, noise, 0).ask(request)).reply
        assert reply is not None
        right.append(reply.option == "C")
    assert 0.15 < np.mean(right) < 0.35


@pytest.mark.parametrize("agent", ["eea", "vca", "uniform", "blind", "random"])
def test_agents_run_unchanged_and_repeatably(agent):
    world = world_of()
    first, again = (asked(world, Noise(), agent) for _ in range(2))
    assert first.option in range(4)
    assert (first.option, first.evidence, first.rounds) == (again.option, again.evidence, again.rounds)


def test_vca_without_tree_looks_near_what_it_saw():
    world = world_of(spec=replace(SOUGHT, evidence=((600.0, 1200.0),)))
    model = SimulatedModel(world, FAULTLESS, 0)
    parameters = VCAParameters(tree_search=False)
    answer = asyncio.run(ask(world.question, world.environment, model, agent="vca", parameters=parameters))
    assert answer.option == 2


def test_where_queries_match_eea_needs_one_round():
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
