"""Requests of the tree agents: prompts as text, and replies in the shapes that the papers' prompts ask for."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from kinodex.agent.errors import InvalidReply
from kinodex.agent.limits.budget import Budget
from kinodex.agent.models.reply_parser import parse_reply
from kinodex.agent.prompts.rendering import render
from kinodex.agent.prompts.tokens import estimate_request
from kinodex.agent.protocol.exchange import Exchange, Usage
from kinodex.agent.protocol.frames import ShownFrame
from kinodex.agent.protocol.question import Question
from kinodex.agent.protocol.request import Request
from kinodex.agent.protocol.videos import ScoredSegment, Segment, Video
from kinodex.agent.requests.answer import chosen_option
from kinodex.agent.requests.tree import (
    Decide,
    Decision,
    ScoreSegments,
    SegmentScore,
    SegmentScores,
)
from kinodex.agent.session import Session
from kinodex.agent.variants.eea.requests import RewardSegments, SelectSegment
from kinodex.agent.variants.kino.requests import MOST_LISTED, ChooseStep, RateSegments
from kinodex.agent.variants.videoagent2.requests import CaptionFrames
from kinodex.agent.variants.videoseek.look_requests import OverviewVideo, SkimRange
from kinodex.agent.variants.videotree.requests import JudgeRelevance
from kinodex.index.library import Library
from tests.support.every_request import QUESTION as QUESTION_OF_PARTS
from tests.support.every_request import of_full_size
from tests.support.libraries.agent_library import environment_of

COLOURS = Question("What colour is the kite?", ("red", "dark blue", "green"))
VIDEO = Video("v" * 32, "film", 0.0, 100.0)
PARTS = (Segment(1, VIDEO.video_id, 0.0, 50.0), Segment(2, VIDEO.video_id, 50.0, 100.0))
FRAME = ShownFrame(VIDEO.video_id, 50, 50.0, 8, 8, b"picture")


def scoring() -> ScoreSegments:
    return RewardSegments(question=COLOURS, videos=(VIDEO,), segments=PARTS, frames=(FRAME,))


def test_scores_are_read_in_the_shape_of_the_paper_and_impossible_ones_refused() -> None:
    paper = {"Segment 1": {"explanation": "sky", "score": "85%"}, "Segment 2": {"explanation": "sea", "score": 10}}
    reply = SegmentScores.model_validate(paper)
    assert [(each.segment, each.score, each.reasoning) for each in reply.segments] == [(1, 85, "sky"), (2, 10, "sea")]
    assert SegmentScores.model_validate({"segments": [{"segment": "Segment 2", "score": 7}]}).segments[0].segment == 2
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"Segment 9": {"score": 5}}, "there is no segment 9; the numbers are 1, 2"),
        ({"segments": [{"segment": 1, "score": 5}, {"segment": 1, "score": 6}]}, "twice"),
        ({"segments": []}, "no segment is there; give one for each of 1, 2"),
    ]
    for scores, said in wrong:
        with pytest.raises(InvalidReply, match=said):
            scoring().check(SegmentScores.model_validate(scores))


def deciding(kind: type[Decide] = SelectSegment, **more: Any) -> Decide:
    """A decision between a segment that can be explored and one that cannot."""
    candidates = (ScoredSegment(PARTS[0], 0.5), ScoredSegment(PARTS[1], 0.4, explorable=False))
    given = {"question": COLOURS, "videos": (VIDEO,), "candidates": candidates, "frames": (FRAME,), **more}
    return kind(**given)


def test_decisions_are_read_in_the_shape_of_the_paper_and_impossible_ones_refused() -> None:
    assert Decision.model_validate({"Segment": 4}).segment == 4
    assert Decision.model_validate({"segment": "Segment 4"}).action == "explore"
    with pytest.raises(ValidationError, match="action"):  # to explore it, or to answer
        Decision.model_validate({"segment": 4, "option": "B"})
    assert Decision.model_validate({"segment": 4, "option": None, "answer": "null"}).action == "explore"
    answer = Decision.model_validate("C")
    assert (answer.action, chosen_option(COLOURS, answer)) == ("answer", 2)
    wrong: list[tuple[dict[str, Any], bool, str]] = [
        ({"Segment": 2}, False, "segment 2 cannot be explored; choose one of \\[1\\]"),
        ({"Segment": 77}, False, "segment 77 cannot be explored"),
        ({"action": "explore"}, False, "segment None cannot be explored"),
        ({"Segment": 1}, True, "exploring is over"),
        ({"option": "D"}, False, "'D' names no option; write one letter, from A to C"),
        ({"action": "answer", "answer": "a balloon"}, False, "names no option"),
    ]
    for decision, must_answer, said in wrong:
        with pytest.raises(InvalidReply, match=said):
            deciding(must_answer=must_answer).check(Decision.model_validate(decision))
    for scores in ("reward", "none"):
        numbers, score = range(40), None if scores == "none" else 0.5
        many = tuple(ScoredSegment(Segment(at, VIDEO.video_id, at, at + 1.0), score and at / 100) for at in numbers)
        request = deciding(ChooseStep, candidates=many, scores=scores)
        shown = [int(number) for number in re.findall(r"^- Segment (\d+):", render(request), re.MULTILINE)]
        with pytest.raises(InvalidReply) as complaint:
            request.check(Decision.model_validate({"Segment": 77}))
        assert str(complaint.value) == f"segment 77 cannot be explored; choose one of {shown}, or answer"
        assert len(shown) == MOST_LISTED, "those that were listed"


def test_a_score_is_on_one_scale_or_is_asked_for_again() -> None:
    """Also alone in a second request: a part that was left out must not lose the search by its scale."""
    first = SegmentScores(segments=[SegmentScore(segment=1, score=85)])
    cases: list[tuple[tuple[float, ...], tuple[float, ...] | None]] = [
        ((0.99, 0.0), (99, 0)),
        ((1.0, 0.5), (100, 50)),
        ((0, 0), (0, 0)),
        ((1, 85), (1, 85)),
        ((1.0, 0.0), None),
        ((1, 0), None),
        ((1, 1), None),
        ((1.0,), None),
        ((8.5, 2), (85, 20)),
        ((5, 10), (5, 10)),
        ((8, 2), None),
    ]
    for scores, read in cases:
        request = scoring() if len(scores) == 2 else scoring().missing(first)
        assert request is not None
        reply, problem = parse_reply(written(*scores, first=3 - len(scores)), request)
        assert (reply and tuple(each.score for each in reply.segments)) == read, (scores, read)
        assert (problem is None) == (read is not None), (scores, read)
    known = replace(scoring(), history=(ScoredSegment(Segment(7, VIDEO.video_id, 0.0, 9.0), 40.0),))
    for request, at_once in ((replace(scoring(), attempt=1), (80, 20)), (known, (8, 2))):
        reply, _ = parse_reply(written(8, 2), request)
        assert reply is not None and tuple(each.score for each in reply.segments) == at_once


def written(*scores: float, first: int = 1) -> str:
    return json.dumps({"segments": [{"segment": at, "score": each} for at, each in enumerate(scores, start=first)]})


# Replies in parts: what one leaves out is asked for alone, and the parts of two replies are one reply.


WHOLE = 7
LISTS: dict[type[Request[Any]], tuple[str, str]] = {
    RewardSegments: ("segments", "segment"),
    RateSegments: ("segments", "segment"),
    JudgeRelevance: ("clusters", "cluster"),
    OverviewVideo: ("frames", "frame"),
    SkimRange: ("frames", "frame"),
    CaptionFrames: ("captions", "frame"),
}


class Sluggish:
    """A model that writes the example of each request as text; of a list of a length in `cuts` that slice."""

    name, has_language = "sluggish", True

    def __init__(self, cuts: dict[int, slice]) -> None:
        self.cuts = cuts
        self.requests: list[Request[Any]] = []

    async def ask(self, request: Request[Any]) -> Exchange[Any]:
        self.requests.append(request)
        reply, (name, _) = json.loads(json.dumps(request.example())), LISTS[type(request)]
        reply[name] = reply[name][self.cuts.get(len(reply[name]), slice(None))]
        text = json.dumps(reply)
        return Exchange(*parse_reply(text, request), Usage(100, 10), raw=text)


@pytest.fixture(scope="module")
def ask(words_library: Library) -> Callable[..., Any]:
    """Ask one request of a model in a session of its own."""
    environment = environment_of(words_library, "talk")

    def ask_one(model: Sluggish, request: Request[Any], **budget: int) -> Any:
        session = Session(QUESTION_OF_PARTS, environment, model, Budget(**budget), lambda event: None)
        return asyncio.run(session.ask(request))

    return ask_one


def test_what_a_reply_leaves_out_is_asked_for_alone_and_joined(ask: Callable[..., Any]) -> None:
    for kind, (name, number) in LISTS.items():
        model, request = Sluggish({WHOLE: slice(2, 3)}), of_full_size(kind)
        reply, example = ask(model, request), json.loads(json.dumps(request.example()))
        whole = parse_reply(json.dumps(example), request)[0]
        known = [sorted(getattr(each, number) for each in getattr(said, name)) for said in (reply, whole)]
        assert known[0] == known[1], kind
        first, second = model.requests
        schemas = [each.schema()["properties"][name] for each in (first, second)]
        assert [each["minItems"] for each in schemas] == [WHOLE, WHOLE - 1], "the six that are missing, alone"
        assert (second.attempt, second.complaint) == (0, "")
        parts = [*example[name], {**example[name][0], number: 99}, example[name][1]]
        reply, problem = parse_reply(json.dumps({**example, name: parts}), request)
        assert reply == whole and reply is not None, ("a number too many costs no part beside it", problem)


def test_what_is_there_is_used_if_the_rest_is_never_given_or_not_affordable(
    ask: Callable[..., Any],
) -> None:
    request, one, none = of_full_size(JudgeRelevance), slice(0, 1), slice(0, 0)
    lazy = Sluggish({WHOLE: one, WHOLE - 1: one})
    assert len(ask(lazy, request).clusters) == len(lazy.requests) == 2, "one of each of two replies"
    stubborn = Sluggish({WHOLE: one, WHOLE - 1: none})
    assert (len(ask(stubborn, request).clusters), len(stubborn.requests)) == (1, 3), "without any part it is invalid"
    model, scores = Sluggish({WHOLE: slice(0, 3)}), of_full_size(RewardSegments)
    reply = ask(model, scores, tokens=estimate_request(scores) + 300)
    assert (len(model.requests), len(reply.segments)) == (1, 3)
