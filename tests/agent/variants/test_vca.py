"""VCA: its search with and without a tree, and the request of that."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from pydantic import ValidationError

from kinodex.agent.answer_rules import AnswerRules
from kinodex.agent.errors import InvalidReply
from kinodex.agent.prompts.rendering import render
from kinodex.agent.protocol.question import Question
from kinodex.agent.protocol.videos import Video
from kinodex.agent.requests.tree import Decide, DiscoverQueries, ScoreSegments
from kinodex.agent.traces.events import Expanded, Ranked, Remembered, Scored
from kinodex.agent.variants.vca.frame_choice import ChooseFrames, FrameChoice
from kinodex.agent.variants.vca.requests import ExploreSegment, RewardSegments
from tests.support.libraries.agent_library import environment_of, explorer, film, make_library
from tests.support.runs.kite_runs import QUESTION, asked

FILM = {"film": film(1, 700, {420: ("red kite desert", 20)})}
TWO_FILMS = {"first": film(2, 400), "second": film(3, 400, {300: ("red kite desert", 10)})}


def run(library, script=explorer, rounds=3, **settings):
    rules = AnswerRules(force_choice=False)
    return asked(environment_of(library), script, "vca", rounds=rounds, settings=settings, rules=rules)


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


def test_a_video_alone_is_no_candidate_but_explored_segments_stay_and_show_their_widest_gaps(library):
    found = run(library, going_to(5, 5))
    first, second, _ = found.asked(Decide)
    assert [each.segment.number for each in first.candidates] == [1, 2, 3, 4, 5, 6, 7]
    assert [each.segment.number for each in second.candidates] == list(range(1, 15))
    assert [each.segment.number for each in second.candidates if each.divided] == [5]
    assert second.candidates[4].explorable
    assert ["overlaps with its parts" in render(each) for each in (first, second)] == [False, True]
    _, once, again = found.of(Expanded)
    assert once.parent == again.parent == second.candidates[4].segment
    seen_s = sorted(frame.time_s for event in (once, again) for frame in event.frames)
    gaps_s = np.diff([400.0, *seen_s, 500.0])
    assert len(set(seen_s)) == 12 and gaps_s.max() <= 15.0 and gaps_s.min() >= 6.0


def test_rewards_come_with_explanations_and_lead_on_their_own_scale(library):
    def rewarding(request):
        if not isinstance(request, ScoreSegments):
            return explorer(request)
        scores = {each.number: 10 * (each.start_s // 100) for each in request.segments}
        return {f"Segment {at}": {"explanation": f"why {at}", "score": score} for at, score in scores.items()}

    found = run(library, rewarding, 2)
    decide = found.asked(Decide)[0]
    assert decide.scores == "reward"
    assert [(each.score, each.explanation) for each in decide.candidates][:2] == [(0.0, "why 1"), (10.0, "why 2")]
    assert found.of(Expanded)[1].parent.number == 7
    scored = found.of(Scored)[0]
    assert (scored.entropy, [each.fused for each in scored.candidates][-1]) == (None, 0.6)

    def only_the_first(request):
        alone = isinstance(request, ScoreSegments)
        return {f"Segment {request.segments[0].number}": {"score": 70}} if alone else explorer(request)

    decide = run(library, only_the_first, 2).asked(Decide)[0]
    assert [each.score for each in decide.candidates] == [70, 70, *[None] * 5], "asked for twice, and then left out"
    assert ", not rated" in render(decide)


def numbers(frames):
    return [frame.frame_no for frame in frames]


def test_without_reward_nothing_is_scored_and_the_image_reward_is_the_similarity_of_the_borders(library):
    found = run(library, going_to(3), 2, reward="none", memory=6)
    assert [type(request) for request in found.model.requests] == [ExploreSegment, ExploreSegment]
    scores = {(request.scores, each.score) for request in found.model.requests for each in request.candidates}
    assert scores == {("none", None)} and found.of(Scored) == []
    last = found.model.requests[1].frames
    assert numbers(last) == numbers(found.of(Expanded)[1].frames), "the oldest frames leave"
    found = run(library, rounds=2, reward="image")
    assert [type(request) for request in found.model.requests] == [ExploreSegment, ExploreSegment]
    environment = environment_of(library)
    similar = environment.deviations([QUESTION.text], environment.videos[0].video_id)[:, 0]
    expected = np.maximum(similar, 0) / (np.maximum(similar, 0) + 6)
    scored = found.of(Scored)[0].candidates
    assert scored[2].reward == pytest.approx(50 * (expected[200] + expected[300]))
    assert scored[6].reward == pytest.approx(50 * (expected[600] + expected[699]))
    answer = asked(environment, explorer, "vca", settings={"rounds": 4}).answer
    assert (answer.status, answer.reason, answer.rounds, answer.option) == ("budget_exhausted", "rounds", 4, 0)
    assert answer.ledger.frames == 24, "its own limit ends the search"


def test_several_videos_are_ranked_and_stay_candidates(two_films):
    found = run(two_films, rounds=2)
    assert [type(request) for request in found.model.requests][:3] == [DiscoverQueries, RewardSegments, ExploreSegment]
    (ranked,) = found.of(Ranked)
    titles = {video.video_id: video.title for video in environment_of(two_films).videos}
    assert [titles[segment.video_id] for segment in ranked.segments] == ["second", "first"]
    assert found.of(Expanded)[0].parent == ranked.segments[0]
    begun, other = found.asked(Decide)[0].candidates[:2]
    assert (begun.segment, begun.divided, begun.score) == (ranked.segments[0], True, None)
    assert (other.segment, other.divided, other.score) == (ranked.segments[1], False, None)


def choosing(said):
    return lambda request: said if isinstance(request, ChooseFrames) else explorer(request)


def test_without_tree_search_the_policy_names_the_frames(library):
    found = run(library, choosing({"times_s": (425.3, 425.3, 90), "video": None}), tree_search=False)
    assert [type(request) for request in found.model.requests] == [ChooseFrames, ChooseFrames, ExploreSegment]
    assert [[frame.time_s for frame in each.added] for each in found.of(Remembered)] == [
        [100.0, 200.0, 300.0, 400.0, 500.0, 600.0],
        [90.0, 425.0, 426.0],
        [89.0, 424.0, 427.0],
    ]
    assert [time_s for _, time_s in found.asked(ChooseFrames)[1].seen][6:] == [90.0, 425.0, 426.0]
    assert [event.action for event in found.acted()] == ["look"] * 3
    assert (found.answer.status, found.answer.ledger.frames) == ("budget_exhausted", 12)
    last = found.model.requests[-1]
    assert (last.candidates, last.must_answer) == ((), True)
    for said in ({"times_s": [-5]}, "?"):
        found = run(library, choosing(said), tree_search=False)
        assert (found.answer.status, found.answer.option, found.answer.rounds) == ("answered", 0, 1), said
        assert [type(each) for each in found.model.requests] == [ChooseFrames, ChooseFrames, ExploreSegment], said
    found = run(library, choosing({"action": "insufficient_evidence"}), 2, tree_search=False)
    ended = found.answer.status, found.answer.rounds, found.answer.ledger.declined
    assert ended == ("budget_exhausted", 2, 2)
    first, then = found.of(Remembered)
    assert len(first.added) == len(then.added) and not {*first.added} & {*then.added}, "it is shown the rest"


def test_the_policy_is_shown_the_conversation_so_far(library):
    first, second, third = run(library, going_to(5, 8)).asked(Decide)
    assert first.dialogue == () and "The conversation so far" not in render(first)
    assert [(len(each.segments), each.chosen) for each in third.dialogue] == [(7, 5), (7, 8)]
    text = render(third)
    assert text.index("Round 1: Segment 1: 0 s to 100 s, score 50; Segment 2:") < text.index(
        "You: Segment 5\nRound 2: "
    )
    assert "You: Segment 8\n" in text and "You: Segment 8" not in render(second)


def test_a_short_video_is_divided_until_all_of_it_was_seen(tmp_path):
    short = make_library(tmp_path / "short", {"short": film(5, 9)})
    found = run(short, rounds=None)
    assert sorted(frame.frame_no for event in found.of(Expanded) for frame in event.frames) == list(range(9))
    found = run(short, choosing({"times_s": (0, 1, 2), "video": None}), None, tree_search=False)
    assert (found.answer.status, found.answer.ledger.frames) == ("answered", 9)
    assert isinstance(found.model.requests[-1], Decide)


LONG_FILM = Video("abcdef0123456789" * 2, "Film", 1.5, 100.0)
OTHER = Video("fedcba9876543210" * 2, "Other", 0.0, 50.0)
SEEN = ((LONG_FILM.video_id, 70.0), (LONG_FILM.video_id, 50.04))
CHOOSING = ChooseFrames(
    question=Question("What colour is the kite?", ("red", "blue")), videos=(LONG_FILM,), frames=(), seen=SEEN, count=6
)


def test_choices_that_are_impossible_or_misshapen_are_refused():
    several = replace(CHOOSING, videos=(LONG_FILM, OTHER))
    exhausted = replace(several, exhausted=(OTHER.video_id,))
    several.check(FrameChoice.model_validate({"times_s": [49.9], "video": "fedcba987654"}))
    exhausted.check(FrameChoice.model_validate({"times_s": [5], "video": LONG_FILM.video_id}))
    for request, said, wrong in (
        (CHOOSING, {"times_s": [101.5]}, r"101.5 s is not in the video, 1.5 s to 101.5 s"),
        (CHOOSING, {"action": "look", "times_s": []}, "got 0 times; name 1 to 6"),
        (CHOOSING, {"times_s": [2, 3, 4, 5, 6, 7, 8]}, "got 7 times; name 1 to 6"),
        (CHOOSING, {"times_s": [2], "video": "1234"}, "'1234' names no video; the videos are abcdef012345"),
        (CHOOSING, {"action": "answer", "option": "C"}, "names no option"),
        (several, {"times_s": [60], "video": "fedcba987654"}, "60 s is not in the video, 0 s to 50 s"),
        (several, {"times_s": [2]}, "None names no video; the videos are abcdef012345, fedcba987654"),
        (exhausted, {"times_s": [5], "video": OTHER.video_id}, r"all frames of video fedcba987654 .* \(abcdef012345\)"),
    ):
        with pytest.raises(InvalidReply, match=wrong):
            request.check(FrameChoice.model_validate(said))
    for misshapen in (
        {"times_s": ["soon"]},
        {"action": "explore"},
        {"times_s": 5},
        ["look"],
        {"times_s": [5], "option": "B"},
    ):
        with pytest.raises(ValidationError):
            FrameChoice.model_validate(misshapen)
