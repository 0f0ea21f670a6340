"""One request asked: checked, asked for once more with what was wrong, and for what a reply leaves out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kinodex.agent.attempts import Outcome, ask_checked
from kinodex.agent.errors import AllRejected, ModelRejected, ModelUnreachable
from kinodex.agent.protocol.exchange import Usage
from kinodex.agent.requests.judge_moments import FoundMoment, JudgeMoments
from tests.support.libraries.agent_library import ScriptedModel

COST = Usage(input_tokens=10, cost=0.5)


def request(count: int = 3) -> JudgeMoments:
    moments = tuple(FoundMoment(number, "film", float(number), number + 1.0, ()) for number in range(1, count + 1))
    return JudgeMoments(sought="a boat", moments=moments, frames=(), notes=())


def verdicts(*numbers: int) -> dict[str, Any]:
    return {"moments": [{"moment": each, "reasoning": f"it is there ({each})", "present": True} for each in numbers]}


def asked(*replies: Any, count: int = 3) -> tuple[Outcome[Any], ScriptedModel]:
    """The outcome of a model that gives these replies in turn, or raises those that are errors."""
    left: Iterator[Any] = iter(replies)

    def script(_: Any) -> Any:
        reply = next(left)
        if isinstance(reply, Exception):
            raise reply
        return reply

    model = ScriptedModel(script, COST)
    outcome = asyncio.run(ask_checked(model, request(count)))
    assert next(left, None) is None, "nothing more is asked than there are replies"
    return outcome, model


def judged(outcome: Outcome[Any]) -> list[int]:
    return [] if outcome.given is None else [each.moment for each in outcome.given.moments]


def test_an_impossible_reply_is_asked_for_once_more_with_what_was_wrong_with_it() -> None:
    outcome, model = asked(verdicts(7), verdicts(1, 2, 3))
    assert (judged(outcome), outcome.calls, outcome.invalid, outcome.complaint) == ([1, 2, 3], 2, 1, "")
    first, second = model.requests
    assert (first.attempt, second.attempt) == (0, 1)
    assert "moment 7" in second.complaint and '"moment": 7' in second.bad_reply
    assert (outcome.usage.input_tokens, outcome.usage.cost) == (20, 1.0)


def test_after_two_replies_of_no_use_there_is_none_and_the_last_fault() -> None:
    outcome, _ = asked("I cannot say.", verdicts(9))
    assert (outcome.given, outcome.calls, outcome.invalid) == (None, 2, 2)
    assert "moment 9" in outcome.complaint and outcome.usage.cost == 1.0


def test_what_a_reply_leaves_out_is_asked_for_alone_and_what_came_is_used_if_that_fails() -> None:
    for rest, found, calls in (
        ([verdicts(1, 3)], [2, 1, 3], 2),
        (["nothing", verdicts(3)], [2, 3], 3),
        (["nothing", "nothing"], [2], 3),
        ([ModelRejected("too long")], [2], 2),
    ):
        outcome, model = asked(verdicts(2), *rest)
        assert (judged(outcome), outcome.calls) == (found, calls), rest
        second: Any = model.requests[1]
        assert ([each.number for each in second.moments], second.complaint, second.bad_reply) == ([1, 3], "", "")


def test_a_refusal_is_an_outcome_but_what_all_would_meet_is_raised() -> None:
    outcome, _ = asked("nonsense", ModelRejected("a filter"))
    assert (outcome.calls, outcome.invalid, outcome.usage.cost) == (2, 1, 0.5), "what was paid until then"
    with pytest.raises(ModelRejected, match="a filter"):
        _ = outcome.given
    raising: list[Callable[[], Exception]] = [lambda: AllRejected("a wrong key"), lambda: ModelUnreachable("gone")]
    for error in raising:
        with pytest.raises(type(error())):
            asked(error())
