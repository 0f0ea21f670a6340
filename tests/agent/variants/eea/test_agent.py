"""EEA on a real library: it looks where the queries match, covers the rest, and its parts can be switched off;
and the formulas of section 3.2 give the numbers that they must give.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from agent.ask_questions import ask, default_parameters
from agent.core.budget import Budget
from agent.core.question import Question, Segment
from agent.errors import BadSettings
from agent.requests.tree import Decide, DiscoverQueries, ProposeQueries, ScoreSegments
from agent.trace.events import Decided, Event, Expanded, Finished, QueriesAdded, Remembered, RunStarted, Scored
from agent.variants.eea.agent import EEAParameters, fuse, query_score, reward_entropy
from tests.support.libraries.agent_library import ScriptedModel, environment_of, explorer, film, make_library

QUESTION = Question("What colour is the kite over the desert?", ("blue", "red"))
EVENT_S = range(1234, 1246)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    event = {EVENT_S.start: ("red kite desert", len(EVENT_S))}
    return make_library(tmp_path_factory.mktemp("eea"), {"hour": film(1, 3600, event)})


@pytest.fixture(scope="module")
def two_films(tmp_path_factory):
    films = {"first": film(2, 400), "second": film(3, 400, {300: ("red kite desert", 10)})}
    return make_library(tmp_path_factory.mktemp("films"), films)


def run(library, script=explorer, budget=None, **parameters):
    environment, model = environment_of(library), ScriptedModel(script)
    events: list[Event] = []
    settings = replace(default_parameters("eea", environment), **parameters)
    answer = asyncio.run(
        ask(
            QUESTION, environment, model, parameters=settings, budget=budget or Budget(rounds=3), on_event=events.append
        )
    )
    return answer, events, model


def of(kind, events):
    return [event for event in events if isinstance(event, kind)]


def test_the_first_round_looks_at_the_anchors_and_covers_the_rest(library):
    _, events, _ = run(library)
    first = of(Expanded, events)[0]
    assert len(first.frames) == 6
    assert len(first.children) == 7
    assert 1 <= len(first.anchor_frame_nos) <= 3
    assert set(first.anchor_frame_nos) & set(EVENT_S)
    seen_s = np.asarray([frame.time_s for frame in first.frames])
    assert max(np.abs(seen_s - time_s).min() for time_s in range(3600)) < 3600 / 6


def test_segments_stay_a_partition_and_frames_are_never_sampled_twice(library):
    _, events, _ = run(library, budget=Budget(rounds=5))
    leaves: dict[int, Segment] = {}
    shown = []
    for event in of(Expanded, events):
        leaves.pop(event.parent.number, None)
        leaves |= {child.number: child for child in event.children}
        shown += [frame.frame_no for frame in event.frames]
        ordered = sorted(leaves.values(), key=lambda part: part.start_s)
        assert (ordered[0].start_s, ordered[-1].end_s) == (0.0, 3600.0)
        assert all(a.end_s == b.start_s for a, b in pairwise(ordered))
    assert len(shown) == len(set(shown)) > 24


def test_equal_rewards_leave_the_choice_to_the_queries(library):
    _, events, _ = run(library)
    scored = of(Scored, events)[0]
    assert scored.entropy == pytest.approx(1.0)
    best = max(scored.candidates, key=lambda each: each.fused)
    assert best.fused == pytest.approx(best.query_score)
    chosen = next(part for part in of(Expanded, events)[0].children if part.number == best.number)
    assert chosen.start_s <= EVENT_S.stop
    assert chosen.end_s >= EVENT_S.start


def test_one_clear_reward_decides_alone(library):
    def last_wins(request):
        if isinstance(request, ScoreSegments):
            last = request.segments[-1].number
            return {f"Segment {each.number}": {"score": 100 * (each.number == last)} for each in request.segments}
        return explorer(request)

    _, events, _ = run(library, last_wins)
    first = of(Scored, events)[0]
    assert first.entropy == pytest.approx(0.0, abs=1e-6)
    assert max(first.candidates, key=lambda each: each.fused).reward == 100


def test_two_calls_in_sequence_and_new_queries_are_retrieved_alone(library):
    def proposing(request):
        return {"query1": "white cat snow"} if isinstance(request, ProposeQueries) else explorer(request)

    _, events, model = run(library, proposing, Budget(rounds=1))
    assert [type(request) for request in model.requests] == [DiscoverQueries, ScoreSegments, ProposeQueries, Decide]
    added = of(QueriesAdded, events)
    assert [event.queries for event in added] == [("red kite desert",), ("white cat snow",)]
    assert {anchor.query for anchor in added[1].anchors} == {"red kite desert", "white cat snow"}
    assert len(added[1].anchors) > len(added[0].anchors)


def test_known_queries_are_not_added_again(library):
    def again(request):
        return ["RED kite desert"] if isinstance(request, ProposeQueries) else explorer(request)

    _, events, model = run(library, again, Budget(rounds=2))
    assert len(of(QueriesAdded, events)) == 1
    assert model.asked(ProposeQueries)[1].known == ("red kite desert",)


def test_later_rounds_carry_the_history_and_their_parent(library):
    _, events, model = run(library, budget=Budget(rounds=2))
    first, second = model.asked(ScoreSegments)
    assert (first.parent, first.history) == (None, ())
    assert second.parent == of(Expanded, events)[1].parent.number
    assert [each.segment for each in second.history] == list(first.segments)
    assert second.history[0].score == 50


def test_memory_keeps_the_frames_with_the_highest_rewards(library):
    def early_is_best(request):
        if isinstance(request, ScoreSegments):
            return {f"Segment {each.number}": {"score": 90 - each.number} for each in request.segments}
        return explorer(request)

    _, events, model = run(library, early_is_best, Budget(rounds=2), memory=4)
    final = model.asked(Decide)[-1].frames
    assert len(final) == 4
    assert list(final) == sorted(final, key=lambda frame: frame.time_s)
    first_round = of(Expanded, events)[0].frames
    assert set(final) == set(first_round[:4])
    assert sum(len(event.evicted) for event in of(Remembered, events)) == 8


def test_policy_may_go_back_to_an_older_segment(library):
    def backtracking(request):
        if isinstance(request, Decide) and not request.must_answer:
            return {"Segment": min(each.segment.number for each in request.candidates if each.explorable)}
        return explorer(request)

    _, events, _ = run(library, backtracking)
    parents = [event.parent.number for event in of(Expanded, events)]
    assert parents[:3] == [0, 1, 2]


def test_without_guided_expansion_frames_are_spread_uniformly(library):
    _, events, _ = run(library, budget=Budget(rounds=1), semantic_guided_expansion=False)
    first = of(Expanded, events)[0]
    assert first.anchor_frame_nos == ()
    assert np.diff([frame.time_s for frame in first.frames]) == pytest.approx([514] * 5, abs=2)


def test_without_fusion_the_score_is_the_reward(library):
    _, events, _ = run(library, budget=Budget(rounds=1), uncertainty_aware_fusion=False)
    scored = of(Scored, events)[0]
    assert [each.fused for each in scored.candidates] == [0.5] * 7


def test_without_query_update_nothing_is_proposed(library):
    _, _, model = run(library, query_update=False)
    assert model.asked(ProposeQueries) == []
    assert model.asked(DiscoverQueries)


def test_with_no_use_for_queries_none_are_discovered(library):
    _, _, model = run(library, semantic_guided_expansion=False, uncertainty_aware_fusion=False, query_update=False)
    assert model.asked(DiscoverQueries) == []


def test_search_begins_in_the_video_that_matches(two_films):
    _, events, _ = run(two_films, budget=Budget(rounds=1))
    titles = {video.video_id: video.title for video in of(RunStarted, events)[0].videos}
    assert titles[of(Expanded, events)[0].parent.video_id] == "second"
    scored = of(Scored, events)[0]
    assert len(scored.candidates) == 8
    assert sum(each.reward is None for each in scored.candidates) == 1


def test_of_many_videos_the_best_matching_are_searched(two_films):
    _, events, model = run(two_films, budget=Budget(rounds=1), videos=1)
    assert [video.title for video in model.asked(Decide)[0].videos] == ["second"]
    assert len(of(Scored, events)[0].candidates) == 7


def test_a_short_video_is_seen_whole_and_then_answered(tmp_path):
    short = make_library(tmp_path / "short", {"short": film(5, 9)})
    answer, events, model = run(short, budget=Budget(rounds=None))
    assert sorted(frame.frame_no for event in of(Expanded, events) for frame in event.frames) == list(range(9))
    assert answer.status == "answered"
    assert answer.ledger.frames == 9
    assert model.asked(Decide)[-1].must_answer


def test_the_answer_comes_with_evidence_that_was_shown(library):
    answer, events, _ = run(library, budget=Budget(rounds=2))
    assert (answer.text, answer.letter, answer.rounds) == ("blue", "A", 2)
    shown = {frame.time_s for event in of(Expanded, events) for frame in event.frames}
    assert [each.start_s in shown for each in answer.evidence] == [True]
    assert isinstance(events[-1], Finished)
    assert of(Decided, events)[-1].forced


def test_settings_of_the_paper():
    assert EEAParameters.for_duration(3600) == EEAParameters(frames=6, anchor_frames=3, memory=16)
    assert EEAParameters.for_duration(180) == EEAParameters(frames=4, anchor_frames=3, memory=8)


@pytest.mark.parametrize("wrong", [{"frames": 0}, {"anchor_frames": 7}, {"memory": 0}, {"query_temperature": 0.0}])
def test_settings_that_make_no_sense(wrong):
    with pytest.raises(BadSettings, match="got "):
        EEAParameters(**wrong)


def test_query_score_is_a_soft_maximum_to_which_every_anchor_adds():
    assert query_score([0.32]) == pytest.approx(0.32)
    assert query_score([0.32, 0.2, 0.2]) == pytest.approx(0.367, abs=1e-3)
    assert query_score([0.95] * 40) == 1.0
    assert query_score([]) == 0.0


def test_entropy_on_the_scale_of_rewards():
    assert reward_entropy([100, 0, 0, 0, 0, 0, 0]) == pytest.approx(0.0, abs=1e-9)
    assert reward_entropy([50.0] * 7) == pytest.approx(1.0)
    assert reward_entropy([80, 80, 0, 0, 0, 0, 0]) == pytest.approx(0.356, abs=1e-3)
    assert reward_entropy([70.0]) == 0.0


def test_anchors_may_be_averaged_or_count_by_the_best_alone():
    # log-mean-exp, the paper's formula, falls when weaker anchors join.
    assert query_score([0.32, 0.2, 0.2], pooling="mean") == pytest.approx(0.257, abs=1e-3)
    assert query_score([1.0, 1.0], pooling="mean") == pytest.approx(1.0)
    assert query_score([0.32, 0.2, 0.2], pooling="best") == pytest.approx(0.32)
    for pooling in ("mean", "best"):
        assert query_score([0.32], pooling=pooling) == pytest.approx(0.32)
        assert query_score([], pooling=pooling) == 0.0


def test_a_higher_temperature_makes_rewards_less_sure():
    rewards = [80.0, 70.0, 0.0]
    entropies = [reward_entropy(rewards, temperature) for temperature in (1.0, 10.0, 100.0)]
    assert entropies == sorted(entropies)
    assert entropies[0] < 0.01
    assert entropies[2] > 0.9


def test_unknown_rewards_count_as_the_lowest():
    assert reward_entropy([None, None]) == 1.0
    assert reward_entropy([None]) == 1.0
    assert reward_entropy([90, None, None]) == pytest.approx(0.0, abs=1e-9)
    assert fuse(None, 0.5, 0.4) == pytest.approx(0.2)


def test_fusion_moves_from_reward_to_query_score():
    assert fuse(80, 0.3, 0.0) == pytest.approx(0.8)
    assert fuse(80, 0.3, 1.0) == pytest.approx(0.3)
    assert fuse(80, 0.3, 0.25) == pytest.approx(0.75 * 0.8 + 0.25 * 0.3)
