"""Answers: what an agent returns is checked, and what it rests on."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest

from agent.answer import Answer, Evidence
from agent.ask_questions import ask
from agent.core.budget import Ledger
from agent.core.question import Question
from agent.environment import Environment
from agent.errors import BadAnswer
from agent.session import Session
from agent.trace.events import RunStarted
from agent.variants.base import Variant
from agent.variants.baselines.uniform import UNIFORM
from tests.support.agent_library import ScriptedModel, environment_of, film, make_library

ANSWER = {"action": "answer", "option": "A", "answer": "red", "evidence": [1]}


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return environment_of(make_library(tmp_path_factory.mktemp("library"), {"film": film(1, 40)}))


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (None, "the agent returned NoneType instead of an Answer"),
        (Answer("answered", "x", 2, (), 1, Ledger()), "option 2 of 2, counted from 0"),
        (Answer("sure", "x", 0, (), 1, Ledger()), "status 'sure': Input should be 'answered', "),  # type: ignore[arg-type]
        (Answer("answered", "x", 0, (), 1, None), "ledger 'None': Input should be "),  # type: ignore[arg-type]
        (Answer("answered", "x", 0, (Evidence("film", 5.0, math.nan),), 1, Ledger()), "no part of a video"),
        (Answer("answered", "x", 0, (Evidence("elsewhere", 0.0, 1.0),), 1, Ledger()), "no part of a video"),
    ],
)
def test_what_is_no_answer_is_refused_and_not_kept(environment: Environment, given: Any, says: str) -> None:
    async def run(session: Session, parameters: Any) -> Any:
        return given

    odd = Variant("odd", "no answer", run, UNIFORM.parameters, ("vision",))
    events = list[Any]()
    question = Question("What is it?", ("red", "blue"))
    with pytest.raises(BadAnswer) as caught:
        asyncio.run(ask(question, environment, ScriptedModel(lambda _: ANSWER), agent=odd, on_event=events.append))
    assert says in str(caught.value)
    assert [type(event) for event in events] == [RunStarted]
