"""Every reply of the stand-in fits its request: what a rehearsal counts is a run without a repeated request."""

from __future__ import annotations

import pytest

from kinodex.agent.models.completion import parse_reply
from kinodex.agent.protocol import Question, ScoredSegment, Segment, Turn, Video
from kinodex.agent.requests.tree import Decide
from kinodex.agent.variants.videoseek_requests import Act, Limits
from kinodex.jobs.forecast import SEEK_STEPS, explore_on, reply_in_words

QUESTION = Question("Where is the cat?", ("at sea", "at home"))
VIDEO = Video("v", "film", 0.0, 600.0)


@pytest.mark.parametrize("step", range(SEEK_STEPS + 1))
def test_a_seeker_calls_its_tools_in_turn_and_answers(step: int) -> None:
    turns = tuple(Turn("assistant", "...") for _ in range(2 * step))
    request = Act(question=QUESTION, videos=(VIDEO,), known=(), limits=Limits(2), steps=20, turns=turns)
    reply, invalid = parse_reply(reply_in_words(request) or "", request)
    assert invalid is None and reply is not None
    assert reply.tool == ("overview" if step == 0 else "answer" if step == SEEK_STEPS else ("skim", "focus")[step % 2])
    if reply.start_s is not None and reply.end_s is not None:
        assert VIDEO.start_s <= reply.start_s < reply.end_s <= VIDEO.end_s


@pytest.mark.parametrize("step", range(21))
def test_a_restless_seeker_goes_on_to_its_last_step(step: int) -> None:
    turns = tuple(Turn("assistant", "...") for _ in range(2 * step))
    request = Act(question=QUESTION, videos=(VIDEO,), known=(), limits=Limits(2), steps=20, turns=turns)
    reply, invalid = parse_reply(reply_in_words(request, restless=True) or "", request)
    assert invalid is None and reply is not None
    assert (reply.tool == "answer") == (step == 20)


def test_a_restless_search_explores_while_it_may() -> None:
    parts = tuple(
        ScoredSegment(Segment(number, "v", 10.0 * number, 10.0 * number + 10), 0.1 * number) for number in (1, 2)
    )
    request = Decide(question=QUESTION, videos=(VIDEO,), candidates=parts, frames=())
    reply, invalid = parse_reply(explore_on(request) or "", request)
    assert invalid is None and reply is not None and (reply.action, reply.segment) == ("explore", 2)
    assert explore_on(Decide(question=QUESTION, videos=(VIDEO,), candidates=(), frames=())) is None
