"""Many questions at once: the limit, the order, those that fail alone, and what ends them all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from kinodex.agent.errors import AllRejected, BadAnswer, ModelRejected, ModelUnreachable
from kinodex.agent.protocol.question import Question
from kinodex.agent.questions_failed import QuestionsFailed
from kinodex.agent.session import Session
from kinodex.agent.traces.events import Event, RunStarted
from kinodex.agent.variants.base import Variant
from kinodex.agent.variants.baselines.uniform import UNIFORM
from kinodex.agent.videos.environment import Environment
from kinodex.jobs.ask_many import Task, ask_many
from tests.support.libraries.agent_library import ScriptedModel, explorer
from tests.support.runs.kite_runs import kite_environment

ANSWER = {"action": "answer", "option": "A", "answer": "red", "evidence": [1]}


@pytest.fixture(scope="module")
def kites(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    environment: Environment = kite_environment(tmp_path_factory.mktemp("kites"))
    return environment


def raising(error: Exception) -> Callable[[Any], Any]:
    def script(request: Any) -> Any:
        raise error

    return script


def together(environment: Environment, scripts: Sequence[Any], at_once: int = 1, **odd: Any) -> tuple[Any, list[str]]:
    """The answers to a question for each script, or the error, and the questions that were begun; the last is odd."""
    begun: list[str] = []

    def note(event: Event) -> None:
        if isinstance(event, RunStarted):
            begun.append(event.question.text)

    models = [ScriptedModel(each) for each in scripts]
    tasks = [
        Task(Question(f"Is it {number}?", ("yes", "no")), environment, model, "uniform", on_event=note)
        for number, model in enumerate(models)
    ]
    tasks[-1] = replace(tasks[-1], **odd)
    try:
        return asyncio.run(ask_many(tasks, at_once)), begun
    except Exception as error:
        return error, begun


def test_many_questions_at_once_stay_under_the_limit_and_in_order(kites: Environment) -> None:
    under_way, most = 0, 0

    class Slow(ScriptedModel):
        async def ask(self, request: Any) -> Any:
            nonlocal under_way, most
            under_way, most = under_way + 1, max(most, under_way + 1)
            await asyncio.sleep(0.005)
            under_way -= 1
            return await super().ask(request)

    tasks = [Task(Question(f"Is it {n}?", ("yes", "no")), kites, Slow(explorer), agent="uniform") for n in range(7)]
    answers = asyncio.run(ask_many(tasks, together=3))
    assert (most, [answer.letter for answer in answers]) == (3, ["A"] * 7)


def test_one_question_that_fails_takes_no_other_with_it(kites: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kinodex.agent.ask.HANG_S", 0.3)

    class Unpicklable(Exception):
        def __init__(self, one: object, other: object) -> None:
            super().__init__("lost in a pipe")

    def odd(hangs: bool) -> Variant:
        async def run(session: Session, parameters: Any) -> Any:
            await session.ask_all([])
            await (asyncio.Event().wait() if hangs else asyncio.sleep(0))

        return Variant("odd", "never ends", run, UNIFORM.parameters, ("vision",))

    for error in (
        ZeroDivisionError("by zero"),
        ModelRejected("a filter"),
        Unpicklable(1, 2),
        MemoryError(),
        True,
        False,
    ):
        fails = {"agent": odd(error)} if isinstance(error, bool) else {"models": ScriptedModel(raising(error))}
        failed, _ = together(kites, [lambda _: ANSWER] * 5, 2, **fails)
        expected = BadAnswer if isinstance(error, bool) else type(error)
        assert str(failed).startswith("1 of 5 questions got no answer, the one at place 4 because: ")
        assert [each and each.letter for each in failed.answers] == ["A"] * 4 + [None], error
        assert list(failed.errors) == [4] and failed.__cause__ is failed.errors[4], error
        assert type(failed.errors[4]) is expected, error
        assert type(together(kites, [lambda _: ANSWER], **fails)[0]) is expected, "alone it is its own error"


def test_what_every_question_meets_ends_them_all_and_an_endpoint_that_refuses_one_is_not_gone(
    kites: Environment,
) -> None:
    answers, gone, refused = (lambda _: ANSWER), raising(ModelUnreachable("gone")), raising(ModelRejected("this one"))
    for scripts, begun in (
        ([answers, *[raising(AllRejected("a wrong key"))] * 8], 2),
        ([answers, *[gone] * 8], 4),
        ([answers, *[refused] * 8], 9),
    ):
        failed, started = together(kites, scripts)
        assert "8 of 9 questions got no answer" in str(failed)
        assert len(started) == begun == 1 + len(failed.errors), begun
        assert [answer is not None for answer in failed.answers] == [True] + [False] * 8, begun
    for between, count in ((refused, 7), (answers, 7), (raising(ZeroDivisionError("no")), 4)):
        failed, started = together(kites, [gone, gone, between, gone, gone, between, gone])
        assert isinstance(failed, QuestionsFailed | ModelUnreachable) and len(started) == count
