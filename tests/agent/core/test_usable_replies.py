"""Runs whose models make no sense: they end after three rounds, with what was seen if that gives an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from kinodex.agent.answer import Answer
from kinodex.agent.ask import ask
from kinodex.agent.environment import Environment
from kinodex.agent.limits import Budget
from kinodex.agent.protocol import Question
from kinodex.agent.requests.answer import AnswerNotes
from kinodex.agent.requests.describe import DescribeSegment, Summarize
from kinodex.agent.session import UsableReplies
from kinodex.agent.variants.videoagent2_requests import Assess, CreatePlan
from kinodex.agent.variants.videoseek_requests import Act, AnswerNow, Think
from kinodex.index.rows import TranscriptRow
from tests.support.libraries.agent_library import ScriptedModel, environment_of, film, make_library

QUESTION = Question("What colour is the kite over the desert?", ("blue", "red"))
BABBLE = "Lorem ipsum dolor sit amet."


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    library = make_library(tmp_path_factory.mktemp("babble"), {"film": film(1, 120, {70: ("red kite desert", 12)})})
    video_id = library.video("film").video_id
    library.writer.add_transcript({video_id: [TranscriptRow(video_id, 10.0, 12.0, "Welcome.", source="subtitles")]})
    return environment_of(library)


def run(environment: Environment, agent: str, script: Callable[[Any], Any]) -> tuple[Answer, ScriptedModel]:
    model = ScriptedModel(script)
    return asyncio.run(ask(QUESTION, environment, model, agent=agent, budget=Budget(rounds=20))), model


def babbles(request: Any) -> Any:
    """Thoughts, captions and summaries are any text; all other replies are unreadable."""
    match request:
        case Think():
            return {"text": BABBLE}
        case DescribeSegment():
            return {"caption": BABBLE, "confidence": 50}
        case Summarize():
            return {"summary": BABBLE}
    return BABBLE


def test_rounds_count_by_the_replies_that_could_have_been_invalid() -> None:
    replies = UsableReplies()
    replies.count(0, "m", "unreadable")
    for round_no in (1, 2, 4):  # a round without any reply is passed over
        replies.count(round_no, "m", "unreadable")
        replies.count(round_no, "m", f"bad in {round_no}")
    assert (replies.lost_rounds(1), replies.lost_rounds(3), replies.lost_rounds(5)) == (0, 2, 3)
    assert (replies.none_usable, replies.loss(4), replies.loss(5)) == (True, "", "in 3 rounds")
    assert (replies.fault, replies.model) == ("bad in 4", "m")
    replies.count(5, "m", None)
    assert (replies.lost_rounds(6), replies.none_usable) == (0, False)


def test_before_the_first_round_twenty_replies_are_enough(environment: Environment) -> None:
    answer, model = run(environment, "videoagent2", lambda request: BABBLE)
    assert (answer.status, answer.senseless, answer.rounds) == ("invalid", True, 0)
    assert answer.reason.startswith("no reply of scripted could be used of 20, the last because: ")
    assert {type(each) for each in model.requests} == {DescribeSegment}
    assert len(model.requests) == 20


@pytest.mark.parametrize(
    ("agent", "rounds"),
    [("videoseek", 4), ("videoagent2", 4), ("longvideoagent", 4), ("eea", 1), ("vca", 1), ("uniform", 1)],
)
def test_a_model_that_never_makes_sense_ends_the_run(environment: Environment, agent: str, rounds: int) -> None:
    answer, model = run(environment, agent, babbles)
    assert (answer.status, answer.text, answer.senseless, answer.rounds) == ("invalid", None, True, rounds)
    assert answer.reason.startswith("no reply of scripted could be used")
    assert answer.reason.endswith("; `kinodex doctor --base-url URL` finds out what the endpoint can do")
    assert len([each for each in model.requests if not isinstance(each, DescribeSegment)]) <= 15


def test_of_twenty_steps_of_videoseek_three_are_paid_and_the_last_word(environment: Environment) -> None:
    answer, model = run(environment, "videoseek", babbles)
    assert [len(model.asked(kind)) for kind in (Think, Act, AnswerNow)] == [3, 6, 2]
    assert answer.ledger.invalid_replies == 8


def test_what_was_seen_is_not_thrown_away(environment: Environment) -> None:
    def answers_at_last(request: Any) -> Any:
        return {"option": "B", "evidence": [1]} if isinstance(request, AnswerNotes) else babbles(request)

    answer, model = run(environment, "videoagent2", answers_at_last)
    assert (answer.status, answer.option, answer.rounds, answer.senseless) == ("answered", 1, 4, False)
    assert answer.reason == "no reply could be used in 3 rounds; this is the best answer so far"
    assert answer.evidence
    assert len(model.asked(CreatePlan)) == 6


def test_one_usable_reply_in_three_rounds_is_enough_to_go_on(environment: Environment) -> None:
    def now_and_then(request: Any) -> Any:
        if isinstance(request, Assess) and request.number == 3:
            return {"confidence": 0}
        return babbles(request)

    answer, model = run(environment, "videoagent2", now_and_then)
    assert (answer.status, answer.senseless, answer.reason) == ("invalid", False, "no valid answer in two attempts")
    assert max(each.number for each in model.asked(Assess)) == 5
