"""Many questions answered at once, for programs with an event loop of their own: `kinodex.ask_many`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import Any

from kinodex.agent.answer import Answer
from kinodex.agent.answer_rules import USUAL, AnswerRules
from kinodex.agent.ask import ask, spent_until
from kinodex.agent.errors import ENDS_ALL, BadSettings, ModelRejected, ModelUnreachable
from kinodex.agent.limits.budget import UNLIMITED, Budget
from kinodex.agent.protocol.exchange import Models
from kinodex.agent.protocol.question import Question
from kinodex.agent.questions_failed import QuestionsFailed
from kinodex.agent.traces.events import Event
from kinodex.agent.variants.base import Variant
from kinodex.agent.videos.environment import Environment
from kinodex.errors import KinodexError
from kinodex.jobs.batch import Batch, Limits

TOGETHER = 8
"""Questions that `ask_many` answers at once by default."""


@dataclass(frozen=True, slots=True)
class Task:
    """One of many questions, with what `ask` takes."""

    question: Question
    environment: Environment
    models: Models
    agent: str | Variant = "kino"
    parameters: Any = None
    budget: Budget = UNLIMITED
    rules: AnswerRules = USUAL
    on_event: Callable[[Event], None] = lambda event: None


async def ask_many(tasks: Sequence[Task], together: int = TOGETHER) -> list[Answer]:
    """Answer many questions, at most `together` at once; the answers come in the order of the tasks.

    Calls share the slots of the models that the tasks share (`Role.at_once`). If a question raises, the others are
    answered all the same, and `QuestionsFailed` holds their answers; where none has one, the first error is raised.
    What every question would meet ends them all, as do different ones in a row without a reply of the endpoint: no
    further one begins, and those in progress are awaited.
    """
    if together < 1:
        raise BadSettings(f"got {together} questions at once; give 1 or more")
    answers: list[Answer | None] = [None] * len(tasks)
    errors: dict[int, Exception] = {}
    batch: Batch[int] = Batch(Limits(together), "questions", "the error has the other answers")

    async def answered(number: int) -> Answer | Exception:
        task = tasks[number]
        try:
            return await ask(**{each.name: getattr(task, each.name) for each in fields(task)})
        except Exception as error:
            return error

    def keep(number: int, outcome: Answer | Exception) -> None:
        if isinstance(outcome, Exception):
            errors[number], bill = outcome, spent_until(outcome)
            if isinstance(outcome, ENDS_ALL):
                batch.stop(outcome)
        else:
            answers[number], bill = outcome, outcome.ledger
        if isinstance(outcome, ModelUnreachable):
            batch.unheard(tasks[number].question, outcome)
        elif isinstance(outcome, ModelRejected) or bill.calls > bill.cached_calls:  # else nothing was sent
            batch.heard()

    with suppress(*ENDS_ALL, ModelUnreachable):  # what ended it stands in `errors`
        await batch.run_here(range(len(tasks)), answered, keep)
    given = [each for each in answers if each is not None]
    if errors and not given:
        raise errors[min(errors)]
    if len(given) < len(tasks):
        raise _failed(answers, errors)
    return given


def _failed(answers: Sequence[Answer | None], errors: Mapping[int, Exception]) -> QuestionsFailed:
    number = next((number for number, error in errors.items() if isinstance(error, ENDS_ALL)), min(errors))
    first = errors[number]
    said = str(first) if isinstance(first, KinodexError) else f"{type(first).__name__}: {first}"
    left = sum(each is None for each in answers)
    failed = QuestionsFailed(
        f"{left} of {len(answers)} questions got no answer, the one at place {number} because: {said}; "
        "`answers` of this error has the others, `errors` the reasons",
        answers,
        errors,
    )
    failed.__cause__ = first
    return failed
