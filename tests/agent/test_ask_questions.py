"""Questions asked: which agents and parameters are taken, what is no answer, and many questions at once."""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace
from typing import Any

import pytest

from agent.answer import Answer, Evidence
from agent.ask_questions import Task, ask, ask_many, default_parameters
from agent.core.budget import Ledger
from agent.core.question import Question
from agent.environment import Environment
from agent.errors import BadAnswer, BadSettings, UnknownAgent
from agent.session import Session
from agent.trace.events import Event, Finished, RunStarted
from agent.variants.base import Variant
from agent.variants.baselines.uniform import UNIFORM, UniformParameters
from tests.support.libraries.agent_library import ScriptedModel, explorer
from tests.support.runs.kite_runs import kite_environment, run


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    return kite_environment(tmp_path_factory.mktemp("run"))


def test_unknown_agents_and_foreign_parameters(environment):
    with pytest.raises(UnknownAgent, match="there is no agent 'oracle'; the agents are eea, "):
        run(environment, explorer, agent="oracle")
    with pytest.raises(BadSettings, match="not parameters of the agent 'eea'"):
        run(environment, explorer, parameters=UniformParameters(3))


ANSWER = {"action": "answer", "option": "A", "answer": "red", "evidence": [1]}


def test_a_variant_is_asked_as_it_is_and_its_trace_has_its_name(environment: Environment) -> None:
    shown = Variant("mine", "uniform again", UNIFORM.run, UNIFORM.parameters, ("vision",))
    model, events = ScriptedModel(lambda request: ANSWER), list[Any]()
    parameters = replace(default_parameters(shown, environment), frames=2)
    answer = asyncio.run(
        ask("What is it?", environment, model, agent=shown, parameters=parameters, on_event=events.append)
    )
    assert (answer.text, answer.ledger.frames, events[0].agent) == ("red", 2, "mine")
    (again,) = asyncio.run(ask_many([Task(Question("What is it?"), environment, model, shown, parameters)]))
    assert again.evidence == answer.evidence


FIRST = Question("What colour is the kite over the desert?", ("red", "blue"))


NEXT = Question("Is there a cat beside it?", ("yes", "no"))


def test_many_questions_at_once_stay_under_the_limit_and_in_order(environment):
    under_way, most = 0, 0

    class Slow(ScriptedModel):
        async def ask(self, request):
            nonlocal under_way, most
            under_way += 1
            most = max(most, under_way)
            await asyncio.sleep(0.005)
            under_way -= 1
            return await super().ask(request)

    started: list[str] = []
    tasks = [
        Task(
            Question(f"Is it number {number}?", ("yes", "no")),
            environment,
            Slow(explorer),
            agent="uniform",
            on_event=lambda event: started.append(event.question.text) if isinstance(event, RunStarted) else None,
        )
        for number in range(7)
    ]
    answers = asyncio.run(ask_many(tasks, together=3))
    assert most == 3
    assert [answer.letter for answer in answers] == ["A"] * 7
    assert started == [task.question.text for task in tasks]


def test_one_that_fails_stops_the_others(environment):
    events: list[Event] = []

    def failing(request):
        raise ZeroDivisionError

    class Waiting(ScriptedModel):
        async def ask(self, request):
            await asyncio.Event().wait()

    tasks = [Task(FIRST, environment, ScriptedModel(failing), agent="uniform")]
    tasks += [Task(NEXT, environment, Waiting(explorer), on_event=events.append)] * 3
    with pytest.raises(ZeroDivisionError):
        asyncio.run(ask_many(tasks, together=1))
    assert not any(isinstance(event, Finished) for event in events)


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
