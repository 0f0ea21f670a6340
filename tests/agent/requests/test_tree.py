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
from kinodex.agent.limits import Budget
from kinodex.agent.models.completion import parse_reply
from kinodex.agent.prompts import estimate_request, render
from kinodex.agent.protocol import LISTED, Exchange, Question, Request, ScoredSegment, Segment, ShownFrame, Usage, Video
from kinodex.agent.requests.answer import chosen_option
from kinodex.agent.requests.tree import (
    Decide,
    Decision,
    ScoreSegments,
    SegmentScore,
    SegmentScores,
)
from kinodex.agent.session import Session
from kinodex.agent.variants.eea import ScoreAndPropose
from kinodex.agent.variants.videoagent2 import CaptionFrames
from kinodex.agent.variants.videoseek import OverviewVideo, SkimRange
from kinodex.agent.variants.videotree import JudgeRelevance
from kinodex.index.library import Library
from tests.support.every_request import QUESTION as QUESTION_OF_PARTS
from tests.support.every_request import of_full_size
from tests.support.libraries.agent_library import environment_of

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


COLOURS = Question("What colour is the kite?", ("red", "dark blue", "green"))
VIDEO = Video("v" * 32, "film", 0.0, 100.0)
PARTS = (Segment(1, VIDEO.video_id, 0.0, 50.0), Segment(2, VIDEO.video_id, 50.0, 100.0))
FRAME = ShownFrame(VIDEO.video_id, 50, 50.0, 8, 8, b"picture")


def scoring() -> ScoreSegments:
    return ScoreSegments(question=COLOURS, videos=(VIDEO,), segments=PARTS, frames=(FRAME,))


@pytest.mark.parametrize(
    ("scores", "said"),
    [
        ({"Segment 9": {"score": 5}}, "there is no segment 9; the numbers are 1, 2"),
        ({"segments": [{"segment": 1, "score": 5}, {"segment": 1, "score": 6}]}, "twice"),
        ({"segments": []}, "no segment is there; give one for each of 1, 2"),
    ],
)
def test_impossible_scores(scores, said):
    with pytest.raises(InvalidReply, match=said):
        scoring().check(SegmentScores.model_validate(scores))


def two_parts(must_answer: bool = False, question: Question = COLOURS) -> Decide:
    """A decision between a segment that can be explored and one that cannot."""
    candidates = (ScoredSegment(PARTS[0], 0.5), ScoredSegment(PARTS[1], 0.4, explorable=False))
    return Decide(question=question, videos=(VIDEO,), candidates=candidates, frames=(FRAME,), must_answer=must_answer)


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


@pytest.mark.parametrize("scores", ["fused", "none"])
def test_the_complaint_about_a_segment_names_those_that_were_listed(scores):
    many = tuple(
        ScoredSegment(Segment(number, FILM.video_id, number, number + 1.0), None if scores == "none" else number / 100)
        for number in range(40)
    )
    request = deciding(candidates=many, scores=scores)
    shown = [int(number) for number in re.findall(r"^- Segment (\d+):", render(request), re.MULTILINE)]
    assert len(shown) == LISTED
    with pytest.raises(InvalidReply) as complaint:
        request.check(Decision.model_validate({"Segment": 77}))
    assert str(complaint.value) == f"segment 77 cannot be explored; choose one of {shown}, or answer"


def test_scores_in_the_shape_of_the_paper():
    paper = {"Segment 1": {"explanation": "sky", "score": "85%"}, "Segment 2": {"explanation": "sea", "score": 10}}
    reply = SegmentScores.model_validate(paper)
    assert [(each.segment, each.score, each.reasoning) for each in reply.segments] == [(1, 85, "sky"), (2, 10, "sea")]
    assert SegmentScores.model_validate({"segments": [{"segment": "Segment 2", "score": 7}]}).segments[0].segment == 2


def test_decisions_in_the_shape_of_the_paper():
    assert Decision.model_validate({"Segment": 4}).segment == 4
    assert Decision.model_validate({"segment": "Segment 4"}).action == "explore"
    with pytest.raises(ValidationError, match="action"):  # to explore it, or to answer
        Decision.model_validate({"segment": 4, "option": "B"})
    assert Decision.model_validate({"segment": 4, "option": None, "answer": "null"}).action == "explore"
    answer = Decision.model_validate("C")
    assert (answer.action, chosen_option(COLOURS, answer)) == ("answer", 2)


def test_a_score_is_on_one_scale_or_is_asked_for_again():
    """Also alone in a second request: a part that was left out must not lose the search by its scale."""
    for scores, read in [
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
    ]:
        request = scoring() if len(scores) == 2 else scoring().missing(scored(85))
        assert request is not None, (scores, read)
        reply, problem = parse_reply(written(*scores, first=3 - len(scores)), request)
        assert (reply and tuple(each.score for each in reply.segments)) == read, (scores, read)
        assert (problem is None) == (read is not None), (scores, read)
    insisting = replace(scoring(), attempt=1)
    known = replace(scoring(), history=(ScoredSegment(Segment(7, VIDEO.video_id, 0.0, 9.0), 40.0),))
    for request, at_once in ((insisting, (80, 20)), (known, (8, 2))):
        reply, _ = parse_reply(written(8, 2), request)
        assert reply is not None and tuple(each.score for each in reply.segments) == at_once


def written(*scores: float, first: int = 1) -> str:
    return json.dumps({"segments": [{"segment": at, "score": each} for at, each in enumerate(scores, start=first)]})


def scored(*scores: float) -> SegmentScores:
    return SegmentScores(segments=[SegmentScore(segment=at, score=each) for at, each in enumerate(scores, start=1)])


# Replies in parts: what one leaves out is asked for alone, and the parts of two replies are one reply.


WHOLE = 7
LISTS: dict[type[Request[Any]], tuple[str, str]] = {
    ScoreSegments: ("segments", "segment"),
    ScoreAndPropose: ("segments", "segment"),
    JudgeRelevance: ("clusters", "cluster"),
    OverviewVideo: ("frames", "frame"),
    SkimRange: ("frames", "frame"),
    CaptionFrames: ("captions", "frame"),
}
in_parts = pytest.mark.parametrize("kind", LISTS, ids=lambda kind: kind.__name__)


class Sluggish:
    """A model that writes texts: the example of each request, cut as `cut` says."""

    name, has_language = "sluggish", True

    def __init__(self, cut: Callable[[Request[Any], dict[str, Any]], dict[str, Any]]) -> None:
        self.cut = cut
        self.requests: list[Request[Any]] = []

    async def ask(self, request: Request[Any]) -> Exchange[Any]:
        self.requests.append(request)
        text = json.dumps(self.cut(request, json.loads(json.dumps(request.example()))))
        return Exchange(*parse_reply(text, request), Usage(100, 10), raw=text)


@pytest.fixture(scope="module")
def ask(words_library: Library) -> Callable[..., Any]:
    """Ask one request of a model in a session of its own."""
    environment = environment_of(words_library, "talk")

    def ask_one(model: Sluggish, request: Request[Any], **budget: int) -> Any:
        session = Session(QUESTION_OF_PARTS, environment, model, Budget(**budget), lambda event: None)
        return asyncio.run(session.ask(request))

    return ask_one


def keep(places: slice) -> Callable[[Request[Any], dict[str, Any]], dict[str, Any]]:
    """Keep some parts of a first reply that has all seven, and all parts of the others."""

    def cut(request: Request[Any], reply: dict[str, Any]) -> dict[str, Any]:
        name, _ = LISTS[type(request)]
        return {**reply, name: reply[name][places]} if len(reply[name]) == WHOLE else reply

    return cut


@in_parts
def test_what_a_reply_leaves_out_is_asked_for_alone_and_joined(
    kind: type[Request[Any]], ask: Callable[..., Any]
) -> None:
    model, (name, number) = Sluggish(keep(slice(2, 3))), LISTS[kind]
    request = of_full_size(kind)
    reply = ask(model, request)
    whole = parse_reply(json.dumps(request.example()), request)[0]
    assert sorted(getattr(each, number) for each in getattr(reply, name)) == sorted(
        getattr(each, number) for each in getattr(whole, name)
    )
    first, second = model.requests
    schemas = [each.schema()["properties"][name] for each in (first, second)]
    assert [each["minItems"] for each in schemas] == [WHOLE, WHOLE - 1], "the six that are missing, alone"
    assert second.attempt == 0 and second.complaint == ""


@in_parts
def test_a_number_too_many_costs_no_part_beside_it(kind: type[Request[Any]]) -> None:
    (name, number), request = LISTS[kind], of_full_size(kind)
    whole = json.loads(json.dumps(request.example()))
    parts = [*whole[name], {**whole[name][0], number: 99}, whole[name][1]]
    reply, problem = parse_reply(json.dumps({**whole, name: parts}), request)
    assert reply == parse_reply(json.dumps(whole), request)[0] and reply is not None, problem


def test_what_is_there_is_used_if_the_rest_is_never_given(ask: Callable[..., Any]) -> None:
    kind, name = JudgeRelevance, "clusters"
    lazy = Sluggish(lambda request, reply: {**reply, name: reply[name][:1]})
    assert len(getattr(ask(lazy, of_full_size(kind)), name)) == 2, "one of each of two replies"
    assert len(lazy.requests) == 2
    stubborn = Sluggish(lambda request, reply: {**reply, name: reply[name][:1] if len(reply[name]) == WHOLE else []})
    assert len(getattr(ask(stubborn, of_full_size(kind)), name)) == 1
    assert len(stubborn.requests) == 3, "a reply without any part is invalid, and asked for again"


def test_what_is_there_is_used_if_a_budget_does_not_allow_another_call(ask: Callable[..., Any]) -> None:
    kind, model = ScoreSegments, Sluggish(keep(slice(0, 3)))
    request = of_full_size(kind)
    reply = ask(model, request, tokens=estimate_request(request) + 300)
    assert (len(model.requests), len(getattr(reply, LISTS[kind][0]))) == (1, 3)
