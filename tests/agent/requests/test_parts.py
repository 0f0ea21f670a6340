"""Replies in parts: what one leaves out is asked for alone, and the parts of two replies are one reply."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from kinodex.agent.errors import InvalidReply
from kinodex.agent.limits import Budget
from kinodex.agent.models.completion import parse_reply
from kinodex.agent.protocol import Exchange, Request, Usage
from kinodex.agent.requests.answer import check_numbers, join_parts, missing_positions
from kinodex.agent.requests.describe import DescribeSegment
from kinodex.agent.requests.tree import ScoreSegments, SegmentScore
from kinodex.agent.session import Session
from kinodex.agent.variants.eea import ScoreAndPropose
from kinodex.agent.variants.videoagent2_requests import CaptionFrames
from kinodex.agent.variants.videoseek_requests import OverviewVideo, SkimRange
from kinodex.agent.variants.videotree import JudgeRelevance
from kinodex.index.library import Library
from tests.support.every_request import QUESTION, of_full_size
from tests.support.libraries.agent_library import environment_of

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
        session = Session(QUESTION, environment, model, Budget(**budget), lambda event: None)
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
def test_a_whole_reply_is_asked_for_once(kind: type[Request[Any]], ask: Callable[..., Any]) -> None:
    model = Sluggish(lambda request, reply: reply)
    ask(model, of_full_size(kind))
    assert len(model.requests) == 1


@in_parts
def test_what_is_there_is_used_if_the_rest_is_never_given(kind: type[Request[Any]], ask: Callable[..., Any]) -> None:
    name, _ = LISTS[kind]
    lazy = Sluggish(lambda request, reply: {**reply, name: reply[name][:1]})
    assert len(getattr(ask(lazy, of_full_size(kind)), name)) == 2, "one of each of two replies"
    assert len(lazy.requests) == 2
    stubborn = Sluggish(lambda request, reply: {**reply, name: reply[name][:1] if len(reply[name]) == WHOLE else []})
    assert len(getattr(ask(stubborn, of_full_size(kind)), name)) == 1
    assert len(stubborn.requests) == 3, "a reply without any part is invalid, and asked for again"


@in_parts
def test_what_is_there_is_used_if_a_budget_does_not_allow_another_call(
    kind: type[Request[Any]], ask: Callable[..., Any]
) -> None:
    model = Sluggish(keep(slice(0, 3)))
    reply = ask(model, of_full_size(kind), tokens=120)
    assert (len(model.requests), len(getattr(reply, LISTS[kind][0]))) == (1, 3)


def scored(*scores: float) -> list[float]:
    request = of_full_size(ScoreSegments, len(scores))
    segments = [{"segment": each.number, "score": score} for each, score in zip(request.segments, scores, strict=True)]
    reply, invalid = parse_reply(json.dumps({"segments": segments}), request)
    assert invalid is None and reply is not None
    return [each.score for each in reply.segments]


def test_scores_from_0_to_1_are_read_on_the_scale_that_was_asked_for() -> None:
    assert scored(0.85, 0.2, 0, 1) == [85, 20, 0, 100]
    assert scored(0.5) == [50]


def test_scores_that_may_be_meant_as_they_are_stay() -> None:
    assert scored(0.5, 40) == [0.5, 40]
    assert scored(0, 0) == [0, 0]


def test_a_confidence_of_a_caption_that_is_a_fraction_is_a_share() -> None:
    request = of_full_size(DescribeSegment)
    said = {"caption": "a kite", "confidence": 0.85}
    share, _ = parse_reply(json.dumps(said), request)
    one, _ = parse_reply(json.dumps({**said, "confidence": 1}), request)
    assert share is not None and one is not None
    assert (share.confidence, one.confidence) == (85, 1)


def test_vectors_say_small_numbers_and_mean_them() -> None:
    said = {"segments": [{"segment": 3, "score": 0.4}]}
    assert ScoreSegments.Reply.model_validate(said).segments[0].score == 0.4


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ([9], "there is no frame 9; the numbers are 1 to 4"),
        ([1, 1], "a frame is there twice; give each once"),
        ([], "no frame is there; give one for each of 1 to 4"),
    ],
)
def test_parts_that_are_impossible_are_refused(numbers: list[int], said: str) -> None:
    with pytest.raises(InvalidReply, match=said):
        check_numbers("frame", numbers, [1, 2, 3, 4])


def test_parts_keep_the_order_and_the_numbers_of_the_first_request() -> None:
    first = [SegmentScore(segment=12, score=1)]
    rest = [SegmentScore(segment=2, score=3), SegmentScore(segment=1, score=2)]
    assert missing_positions([11, 12, 31], [12]) == [0, 2]
    parts = join_parts("segment", first, rest, known=[11, 12, 31], rest_known=[1, 2])
    assert [(each.segment, each.score) for each in parts] == [(11, 2), (12, 1), (31, 3)]
