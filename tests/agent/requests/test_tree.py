"""Prompts of the tree agents as text: segments with their scores and times, and what was looked into before."""

from __future__ import annotations

import pytest

from agent.core.protocol import ShownFrame
from agent.core.question import Question, ScoredSegment, Segment, Video
from agent.core.replies import Decision, Queries, SegmentScores
from agent.errors import InvalidReply
from agent.prompts.render import render
from agent.requests.tree import Decide, DiscoverQueries, ProposeQueries, ScoreSegments

FILM = Video("abcdef0123456789" * 2, "Film", 1.5, 100.0)


QUESTION = Question("What colour is the kite?", ("red", "blue"))


FRAMES = (ShownFrame(FILM.video_id, 50, 50.04, 8, 8, b"x"), ShownFrame(FILM.video_id, 70, 70.0, 8, 8, b"y"))


CANDIDATES = (
    ScoredSegment(Segment(3, FILM.video_id, 1.5, 50.04), 25.6, "a kite at its end", divided=True),
    ScoredSegment(Segment(4, FILM.video_id, 1.5, 20.0), None, explorable=False),
)


def deciding(**more) -> Decide:
    return Decide(
        **{
            "question": QUESTION,
            "videos": (FILM,),
            "candidates": CANDIDATES,
            "frames": FRAMES,
            "scores": "reward",
            **more,
        }
    )


def test_rewards_are_shown_on_their_own_scale():
    text = render(deciding())
    assert "each with a score from 0 to 100" in text
    assert "Segment 3: 1.5 s to 50.0 s, score 26, looked into before: a kite at its end\n" in text
    assert "Segment 4: 1.5 s to 20.0 s, score unknown, nothing left to see\n" in text
    assert "\n\n\n" not in text


def test_without_rewards_no_score_is_shown():
    text = render(deciding(scores="none"))
    assert "score" not in text
    assert "Segment 4: 1.5 s to 20.0 s, nothing left to see\n" in text


def test_without_segments_only_the_frames_are_left_to_answer_from():
    text = render(deciding(candidates=(), must_answer=True))
    assert "The segments of the video" not in text
    assert "2 frames are shown below, numbered from 1, each after its time: 50.0 s, 70.0 s." in text
    assert "\n\n\n" not in text


COLOURS = Question("What colour is the kite?", ("red", "dark blue", "green"))


VIDEO = Video("v" * 32, "film", 0.0, 100.0)


PARTS = (Segment(1, VIDEO.video_id, 0.0, 50.0), Segment(2, VIDEO.video_id, 50.0, 100.0))


FRAME = ShownFrame(VIDEO.video_id, 50, 50.0, 8, 8, b"picture")


def scoring() -> ScoreSegments:
    return ScoreSegments(question=COLOURS, videos=(VIDEO,), segments=PARTS, frames=(FRAME,))


@pytest.mark.parametrize(
    ("scores", "said"),
    [
        ({"Segment 1": {"score": 5}, "Segment 9": {"score": 5}}, "segment 9 is not among .*1, 2"),
        ({"segments": [{"segment": 1, "score": 5}, {"segment": 1, "score": 6}]}, "twice"),
        ({"segments": []}, "no segment is scored"),
    ],
)
def test_impossible_scores(scores, said):
    with pytest.raises(InvalidReply, match=said):
        scoring().check(SegmentScores.model_validate(scores))


def two_parts(must_answer: bool = False, question: Question = COLOURS) -> Decide:
    """A decision between a segment that can be explored and one that cannot."""
    candidates = (ScoredSegment(PARTS[0], 0.5), ScoredSegment(PARTS[1], 0.4, explorable=False))
    return Decide(question=question, videos=(VIDEO,), candidates=candidates, frames=(FRAME,), must_answer=must_answer)


def test_a_segment_may_be_left_out():
    scoring().check(SegmentScores.model_validate({"Segment 1": {"score": 5}}))


@pytest.mark.parametrize(
    ("decision", "must_answer", "said"),
    [
        ({"Segment": 2}, False, "segment 2 cannot be explored; choose one of \\[1\\]"),
        ({"Segment": 77}, False, "segment 77 cannot be explored"),
        ({"action": "explore"}, False, "segment None cannot be explored"),
        ({"Segment": 1}, True, "exploring is over"),
        ({"option": "D"}, False, "'D' names no option; give a letter from A to C"),
        ({"action": "answer", "answer": "a balloon"}, False, "names no option"),
    ],
)
def test_impossible_decisions(decision, must_answer, said):
    with pytest.raises(InvalidReply, match=said):
        two_parts(must_answer).check(Decision.model_validate(decision))


def test_an_open_ended_answer_needs_words():
    with pytest.raises(InvalidReply, match="answer is empty"):
        two_parts(question=Question("What?")).check(Decision.model_validate({"action": "answer", "option": "A"}))


def test_queries_are_short_texts():
    with pytest.raises(InvalidReply, match="no query"):
        DiscoverQueries(question=COLOURS).check(Queries(queries=[]))
    with pytest.raises(InvalidReply, match="empty or over 300"):
        ProposeQueries(question=COLOURS, known=(), frames=(FRAME,)).check(Queries(queries=["x" * 301]))
