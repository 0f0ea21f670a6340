"""Questions asked: which agents and parameters are taken, what is no answer, and many questions at once."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kinodex.agent.answer import Answer, Evidence
from kinodex.agent.ask import Task, ask, ask_many, default_parameters, spent_until
from kinodex.agent.environment import Environment
from kinodex.agent.errors import (
    AllRejected,
    BadAnswer,
    BadSettings,
    ModelRejected,
    ModelUnreachable,
    QuestionsFailed,
    UnknownAgent,
)
from kinodex.agent.limits import Ledger
from kinodex.agent.protocol import Question, Usage
from kinodex.agent.session import Session
from kinodex.agent.trace import Event, RunStarted
from kinodex.agent.variants.base import Variant
from kinodex.agent.variants.baselines import UNIFORM, UniformParameters
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


class Unpicklable(Exception):
    def __init__(self, one: object, other: object) -> None:
        super().__init__("lost in a pipe")


def raising(error: Exception) -> Callable[[Any], Any]:
    def script(request: Any) -> Any:
        raise error

    return script


FAILURES = {
    "exception": ZeroDivisionError("division by zero"),
    "no reply": ModelUnreachable("host fails (500)"),
    "too large": ModelRejected("host finds the request too large"),
    "refused": ModelRejected("a filter refuses this"),
    "cannot be pickled": Unpicklable(1, 2),
    "out of memory": MemoryError("no room"),
}


@pytest.mark.parametrize("kind", [*FAILURES, "hang", "no answer"])
@pytest.mark.parametrize("at", [0, 2, 4])
def test_one_question_that_fails_takes_no_other_with_it(
    environment: Environment, kind: str, at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kinodex.agent.ask.HANG_S", 0.3)

    async def hang(session: Session, parameters: Any) -> Any:
        await session.ask_all([])
        await (asyncio.Event().wait() if kind == "hang" else asyncio.sleep(0))

    tasks = [
        Task(Question(f"Is it number {n}?"), environment, ScriptedModel(lambda _: ANSWER), "uniform") for n in range(5)
    ]
    odd = Variant("odd", "never ends", hang, UNIFORM.parameters, ("vision",))
    model = ScriptedModel(raising(FAILURES[kind])) if kind in FAILURES else tasks[at].models
    tasks[at] = replace(tasks[at], models=model, agent="uniform" if kind in FAILURES else odd)
    with pytest.raises(
        QuestionsFailed, match=f"1 of 5 questions got no answer, the one at place {at} because: "
    ) as caught:
        asyncio.run(ask_many(tasks, together=2))
    failed = caught.value
    assert [answer and answer.text for answer in failed.answers] == [None if n == at else "red" for n in range(5)]
    assert list(failed.errors) == [at]
    assert failed.__cause__ is failed.errors[at]
    assert type(failed.errors[at]) is (type(FAILURES[kind]) if kind in FAILURES else BadAnswer)
    with pytest.raises(type(failed.errors[at])):  # alone it is its own error
        asyncio.run(ask_many([tasks[at]]))


@pytest.mark.parametrize(
    ("error", "begun"), [(AllRejected("a wrong key"), 2), (ModelUnreachable("gone"), 4), (ModelRejected("this one"), 9)]
)
def test_what_every_question_meets_ends_them_all(environment: Environment, error: Exception, begun: int) -> None:
    """Two are under way together: the first one with an answer, the others with an error."""
    events: list[Event] = []
    scripts = [lambda _: ANSWER, *[raising(error)] * 8]
    tasks = [
        Task(Question(f"Is it {n}?"), environment, ScriptedModel(script), "uniform", on_event=events.append)
        for n, script in enumerate(scripts)
    ]
    with pytest.raises(QuestionsFailed, match="8 of 9 questions got no answer") as caught:
        asyncio.run(ask_many(tasks, together=1))
    assert sum(isinstance(event, RunStarted) for event in events) == begun == 1 + len(caught.value.errors)
    assert [answer is not None for answer in caught.value.answers] == [True] + [False] * 8


@pytest.mark.parametrize("error", [ModelRejected("no"), ModelUnreachable("no"), AllRejected("no"), ValueError("no")])
def test_the_bill_of_a_question_that_failed_is_known(environment: Environment, error: Exception) -> None:
    replies = iter([explorer, explorer, explorer])

    def three_then(request: Any) -> Any:
        script = next(replies, None)
        if script is None:
            raise error
        return script(request)

    paid = ScriptedModel(three_then, Usage(100, 10, cost=0.5))
    with pytest.raises(type(error)) as caught:
        asyncio.run(ask(FIRST, environment, paid))
    spent = spent_until(caught.value)
    assert (spent.calls, spent.cost, spent.input_tokens) == (3, 1.5, 300)
    assert spent_until(ValueError()) == Ledger()


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
