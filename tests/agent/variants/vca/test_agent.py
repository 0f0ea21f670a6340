"""VCA on a real library: uniform frames, rewards with history, parents that stay, and its ablations."""

from __future__ import annotations

import numpy as np
import pytest

from kinodex.agent.errors import BadSettings
from kinodex.agent.limits import Budget
from kinodex.agent.prompts import render
from kinodex.agent.requests.tree import Decide, DiscoverQueries, ScoreSegments
from kinodex.agent.trace import Expanded, Ranked, Remembered, Scored
from kinodex.agent.variants.vca import VCAParameters
from tests.support.libraries.agent_library import environment_of, explorer, film, make_library
from tests.support.runs.vca_runs import FILM, QUESTION, TWO_FILMS, of, run


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return make_library(tmp_path_factory.mktemp("vca"), FILM)


@pytest.fixture(scope="module")
def two_films(tmp_path_factory):
    return make_library(tmp_path_factory.mktemp("films"), TWO_FILMS)


def going_to(*numbers):
    """Explores these segments in turn, the highest scores after them."""
    left = list(numbers)

    def script(request):
        if isinstance(request, Decide) and not request.must_answer and left:
            return {"Segment": left.pop(0)}
        return explorer(request)

    return script


def rewarding(score):
    """Rewards by a function of the segment."""

    def script(request):
        if isinstance(request, ScoreSegments):
            return {
                f"Segment {each.number}": {"explanation": f"why {each.number}", "score": score(each)}
                for each in request.segments
            }
        return explorer(request)

    return script


def test_frames_are_equally_spaced_and_divide_the_video(library):
    _, events, _ = run(library, budget=Budget(rounds=1))
    (first,) = of(Expanded, events)
    assert [frame.time_s for frame in first.frames] == [100.0, 200.0, 300.0, 400.0, 500.0, 600.0]
    assert [(part.start_s, part.end_s) for part in first.children] == [(at, at + 100.0) for at in range(0, 700, 100)]
    assert first.anchor_frame_nos == ()


def test_a_video_alone_is_no_candidate_but_explored_segments_stay(library):
    _, events, model = run(library, going_to(5))
    first, second, _ = model.asked(Decide)
    assert [each.segment.number for each in first.candidates] == [1, 2, 3, 4, 5, 6, 7]
    assert [each.segment.number for each in second.candidates] == list(range(1, 15))
    assert [each.segment.number for each in second.candidates if each.divided] == [5]
    assert second.candidates[4].explorable
    assert of(Expanded, events)[1].parent == second.candidates[4].segment


def test_a_segment_explored_again_shows_its_widest_gaps(library):
    _, events, _ = run(library, going_to(5, 5))
    _, once, again = of(Expanded, events)
    assert once.parent == again.parent
    seen_s = sorted(frame.time_s for event in (once, again) for frame in event.frames)
    assert len(set(seen_s)) == 12
    assert np.diff([400.0, *seen_s, 500.0]).max() <= 15.0
    assert np.diff([400.0, *seen_s, 500.0]).min() >= 6.0


def test_it_may_go_back_to_an_older_segment(library):
    _, events, _ = run(library, going_to(7, 1))
    assert [event.parent.number for event in of(Expanded, events)] == [0, 7, 1]


def test_rewards_come_with_explanations_and_lead_on_their_own_scale(library):
    _, events, model = run(library, rewarding(lambda part: 10 * (part.start_s // 100)), Budget(rounds=2))
    decide = model.asked(Decide)[0]
    assert decide.scores == "reward"
    assert [(each.score, each.explanation) for each in decide.candidates][:2] == [(0.0, "why 1"), (10.0, "why 2")]
    assert of(Expanded, events)[1].parent.number == 7
    scored = of(Scored, events)[0]
    assert scored.entropy is None
    assert [each.fused for each in scored.candidates][-1] == 0.6


def test_later_rewards_are_asked_for_with_the_history(library):
    _, _, model = run(library, rewarding(lambda part: 50), Budget(rounds=2))
    first, second = model.asked(ScoreSegments)
    assert (first.history, first.parent) == ((), None)
    assert [each.segment for each in second.history] == list(first.segments)
    assert {(each.score, each.explanation) for each in second.history} >= {(50.0, "why 1")}
    assert second.parent in [each.number for each in first.segments]


def numbers(frames):
    return [frame.frame_no for frame in frames]


def test_the_memory_lets_the_lowest_rewards_go(library):
    rewards = rewarding(lambda part: part.start_s / 10)
    _, events, model = run(library, rewards, Budget(rounds=2), memory=6, slack=0)
    assert [frame.time_s for frame in model.asked(Decide)[0].frames] == [100.0, 200.0, 300.0, 400.0, 500.0, 600.0]
    assert [frame.time_s for frame in model.asked(Decide)[1].frames] == [614.0, 629.0, 643.0, 657.0, 671.0, 686.0]
    assert [len(event.evicted) for event in of(Remembered, events)] == [0, 6]


def test_a_segment_left_out_has_no_reward(library):
    def only_the_first(request):
        if isinstance(request, ScoreSegments):
            return {f"Segment {request.segments[0].number}": {"score": 70}}
        return explorer(request)

    _, _, model = run(library, only_the_first, Budget(rounds=2))
    assert [each.score for each in model.asked(Decide)[0].candidates] == [70, 70, *[None] * 5]  # asked for twice
    assert ", not rated" in render(model.asked(Decide)[0])


def test_one_call_to_reward_and_one_to_decide_a_round(library):
    _, _, model = run(library, budget=Budget(rounds=2))
    assert [type(request) for request in model.requests] == [ScoreSegments, Decide] * 2


def test_its_own_limit_ends_the_search_with_an_answer(library):
    answer, _, model = run(library, budget=Budget(), rounds=4)
    assert (answer.status, answer.reason, answer.rounds, answer.option) == ("budget_exhausted", "rounds", 4, 0)
    assert answer.ledger.frames == 24
    assert model.requests[-1].must_answer


@pytest.mark.parametrize("reward", ["model", "image", "none"])
def test_a_short_video_is_seen_whole_and_then_answered(tmp_path, reward):
    short = make_library(tmp_path / "short", {"short": film(5, 9)})
    answer, _, model = run(short, budget=Budget(), reward=reward, memory=16)
    assert [type(request) for request in model.requests] == [Decide]
    assert numbers(model.requests[0].frames) == list(range(9))
    assert answer.status == "answered"


def test_without_reward_nothing_is_scored_and_the_oldest_frames_leave(library):
    _, events, model = run(library, going_to(3), Budget(rounds=2), reward="none", memory=6, slack=0)
    assert [type(request) for request in model.requests] == [Decide, Decide]
    assert {(request.scores, each.score) for request in model.requests for each in request.candidates} == {
        ("none", None)
    }
    assert numbers(model.requests[1].frames) == numbers(of(Expanded, events)[1].frames)
    assert of(Scored, events) == []


def test_the_image_reward_is_the_similarity_of_the_borders(library):
    _, events, model = run(library, budget=Budget(rounds=2), reward="image")
    assert [type(request) for request in model.requests] == [Decide, Decide]
    environment = environment_of(library)
    similar = environment.deviations([QUESTION.text], environment.videos[0].video_id)[:, 0]
    expected = np.maximum(similar, 0) / (np.maximum(similar, 0) + 6)
    scored = of(Scored, events)[0].candidates
    assert scored[2].reward == pytest.approx(50 * (expected[200] + expected[300]))
    assert scored[6].reward == pytest.approx(50 * (expected[600] + expected[699]))


def test_several_videos_are_ranked_and_stay_candidates(two_films):
    _, events, model = run(two_films, budget=Budget(rounds=2))
    assert [type(request) for request in model.requests][:3] == [DiscoverQueries, ScoreSegments, Decide]
    (ranked,) = of(Ranked, events)
    titles = {video.video_id: video.title for video in environment_of(two_films).videos}
    assert [titles[segment.video_id] for segment in ranked.segments] == ["second", "first"]
    assert of(Expanded, events)[0].parent == ranked.segments[0]
    begun, other = model.asked(Decide)[0].candidates[:2]
    assert (begun.segment, begun.divided, other.segment, other.divided) == (
        ranked.segments[0],
        True,
        ranked.segments[1],
        False,
    )
    assert (begun.score, other.score) == (None, None)
    assert other.explanation.endswith(f"is {ranked.similarities[1]:.2f} of 1")


def test_settings_of_the_paper():
    assert VCAParameters.for_duration(3600) == VCAParameters(frames=6, memory=16)
    assert VCAParameters.for_duration(180) == VCAParameters(frames=4, memory=8, slack=6)


@pytest.mark.parametrize("wrong", [{"frames": 0}, {"memory": 0}, {"rounds": 0}])
def test_settings_that_make_no_sense(wrong):
    with pytest.raises(BadSettings, match="got "):
        VCAParameters(**wrong)
