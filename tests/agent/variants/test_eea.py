"""EEA: its search, and the fusion of rewards with query scores. `papers/test_eea` compares it with its paper."""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from kinodex.agent.ask import ask, default_parameters
from kinodex.agent.limits.budget import Budget
from kinodex.agent.prompts.rendering import render
from kinodex.agent.protocol.question import Question
from kinodex.agent.protocol.videos import Segment
from kinodex.agent.requests.tree import Decide, DiscoverQueries, ScoreSegments
from kinodex.agent.traces.events import Event, Expanded, QueriesAdded, Scored
from kinodex.agent.variants.eea.requests import ProposeQueries
from kinodex.agent.variants.eea.scores import fuse, query_score, reward_entropy
from tests.support.libraries.agent_library import ScriptedModel, environment_of, explorer, film, make_library

QUESTION = Question("What colour is the kite over the desert?", ("blue", "red"))
EVENT_S = range(1234, 1246)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    event = {EVENT_S.start: ("red kite desert", len(EVENT_S))}
    return make_library(tmp_path_factory.mktemp("eea"), {"hour": film(1, 3600, event)})


def run(library, script=explorer, budget=None, question=QUESTION, **parameters):
    environment, model = environment_of(library), ScriptedModel(script)
    events: list[Event] = []
    settings = replace(default_parameters("eea", environment), **parameters)
    given = {"parameters": settings, "budget": budget or Budget(rounds=3), "on_event": events.append}
    asyncio.run(ask(question, environment, model, agent="eea", **given))
    return events, model


@pytest.fixture(scope="module")
def searched(library):
    """Events and model of a search of five rounds."""
    return run(library, budget=Budget(rounds=5))


def of(kind, events):
    return [event for event in events if isinstance(event, kind)]


@pytest.mark.slow
def test_the_first_round_looks_at_the_anchors_and_covers_the_rest(searched):
    first = of(Expanded, searched[0])[0]
    assert (len(first.frames), len(first.children)) == (6, 7)
    assert 1 <= len(first.anchor_frame_nos) <= 3
    assert set(first.anchor_frame_nos) & set(EVENT_S)
    seen_s = np.asarray([frame.time_s for frame in first.frames])
    assert max(np.abs(seen_s - time_s).min() for time_s in range(3600)) < 3600 / 6


def test_segments_stay_a_partition_and_frames_are_never_sampled_twice(searched):
    leaves: dict[int, Segment] = {}
    shown = []
    for event in of(Expanded, searched[0]):
        leaves.pop(event.parent.number, None)
        leaves |= {child.number: child for child in event.children}
        shown += [frame.frame_no for frame in event.frames]
        ordered = sorted(leaves.values(), key=lambda part: part.start_s)
        assert (ordered[0].start_s, ordered[-1].end_s) == (0.0, 3600.0)
        assert all(a.end_s == b.start_s for a, b in pairwise(ordered))
    assert len(shown) == len(set(shown)) > 24


def test_new_queries_come_from_the_new_frames_and_are_retrieved_alone(library):
    def proposing(request):
        return {"query1": "white cat snow"} if isinstance(request, ProposeQueries) else explorer(request)

    events, model = run(library, proposing, Budget(rounds=2))
    kinds = [DiscoverQueries, ScoreSegments, ProposeQueries, Decide, ScoreSegments, Decide]
    assert all(isinstance(request, kind) for request, kind in zip(model.requests, kinds, strict=True))
    assert model.asked(ProposeQueries)[0].frames == model.asked(ScoreSegments)[0].frames
    added = of(QueriesAdded, events)
    assert [event.queries for event in added] == [("red kite desert",), ("white cat snow",)]
    assert {anchor.query for anchor in added[1].anchors} == {"red kite desert", "white cat snow"}
    assert len(added[1].anchors) > len(added[0].anchors)


def test_a_frame_keeps_its_number_and_the_memory_is_shown_in_the_order_of_time(library):
    _, model = run(library, budget=Budget(rounds=4), memory=8)
    labels: dict[int, int] = {}
    for request in [*model.asked(ScoreSegments), *model.asked(Decide)]:
        assert all(labels.setdefault(each.frame_no, each.label) == each.label for each in request.frames)
    for request in model.asked(Decide):
        assert [each.time_s for each in request.frames] == sorted(each.time_s for each in request.frames)
    assert sorted(labels.values()) == list(range(1, len(labels) + 1))
    assert [len(request.frames) for request in model.asked(Decide)] == [6, 8, 8, 8]


def judging(reward, below=10**6):
    """Rates all segments of a lower number than `below` alike, and the others not."""

    def script(request):
        if isinstance(request, ScoreSegments):
            return {f"Segment {each.number}": {"score": reward} for each in request.segments if each.number < below}
        return explorer(request)

    return script


def test_a_segment_that_was_not_rated_counts_as_zero_and_is_shown_as_not_rated(library):
    events, model = run(library, judging(40, 4), Budget(rounds=2))
    scored = of(Scored, events)[0]
    unrated = [each for each in model.asked(Decide)[0].candidates if not each.rated]
    assert len(unrated) == 4
    by_number = {each.number: scored.entropy * each.query_score for each in scored.candidates}
    assert [each.score for each in unrated] == pytest.approx([by_number[each.segment.number] for each in unrated])
    assert "not rated" in render(model.asked(Decide)[0])


def test_what_is_switched_off_is_not_asked_and_not_used(library):
    _, model = run(library, query_update=False)
    assert model.asked(ProposeQueries) == [] and model.asked(DiscoverQueries)
    _, model = run(library, semantic_guided_expansion=False, uncertainty_aware_fusion=False, query_update=False)
    assert model.asked(DiscoverQueries) == []
    events, _ = run(library, budget=Budget(rounds=1), semantic_guided_expansion=False)
    (first,) = of(Expanded, events)
    assert first.anchor_frame_nos == ()
    assert np.diff([frame.time_s for frame in first.frames]) == pytest.approx([514] * 5, abs=2)
    events, model = run(library, budget=Budget(rounds=1), uncertainty_aware_fusion=False)
    assert [each.fused for each in of(Scored, events)[0].candidates] == [0.5] * 7
    assert "joins two parts" not in render(model.asked(Decide)[0])
    assert [each.score for each in model.asked(Decide)[0].candidates] == [50] * 7


def test_query_score_is_the_papers_log_mean_exp() -> None:
    scores = [query_score(each) for each in ([0.32], [0.32, 0.2, 0.2], [1.0, 1.0], [])]
    assert scores == pytest.approx([0.32, 0.257, 1.0, 0.0], abs=1e-3)


def test_entropy_is_that_of_the_softmax_of_rewards_from_0_to_100() -> None:
    assert reward_entropy([100, 0, 0, 0, 0, 0, 0]) == pytest.approx(0.0, abs=1e-2)
    assert reward_entropy([50.0] * 7) == pytest.approx(1.0)
    assert reward_entropy([80, 80, 0, 0, 0, 0, 0]) == pytest.approx(0.356, abs=1e-3)
    assert reward_entropy([30, *[20] * 6]) < 0.005, "a lead of ten points is certain, as the paper has no temperature"
    assert (reward_entropy([70.0]), reward_entropy([None, None])) == (0.0, 1.0)
    assert reward_entropy([50, 50, None]) == pytest.approx(math.log(2) / math.log(3)), "one without a reward is 0"


def test_fusion_moves_from_reward_to_query_score() -> None:
    assert [fuse(80, 0.3, entropy) for entropy in (0.0, 0.25, 1.0)] == pytest.approx([0.8, 0.75 * 0.8 + 0.075, 0.3])
