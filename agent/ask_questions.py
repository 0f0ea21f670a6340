"""Ask an agent one question, or many at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from pydantic import TypeAdapter, ValidationError

from agent.answer import Answer
from agent.core.answer_rules import USUAL, AnswerRules
from agent.core.budget import Budget, Ledger
from agent.core.protocol import Models, model_for
from agent.core.question import Question
from agent.core.side_by_side import gather_all
from agent.core.stop_signal import StopSignal
from agent.core.work_clock import time_limit
from agent.environment import Environment
from agent.errors import (
    ENDS_ALL,
    GONE_AFTER,
    BadAnswer,
    BadSettings,
    ModelUnreachable,
    NoUsableReply,
    OutOfBudget,
    QuestionsFailed,
)
from agent.session import Session
from agent.trace.events import Event, Finished, RunStarted
from agent.trace.followup import PriorEvidence
from agent.variants.base import Variant, with_settings
from agent.variants.registry import check_fit, find_variant
from agent.verification import Gate
from index.errors import KinodexError

ANSWER = TypeAdapter(Answer)
UNLIMITED = Budget()
HANG_S = 600.0
"""Time without a call in flight or anything computed after which an agent is taken to hang."""
TOGETHER = 8
"""Questions that `ask_many` answers at once by default."""


def default_parameters(agent: str | Variant, environment: Environment) -> Any:
    """Default parameters of an agent; some depend on the longest video."""
    return find_variant(agent).parameters(max((video.duration_s for video in environment.videos), default=0.0))


async def ask(
    question: Question | str,
    environment: Environment,
    models: Models,
    *,
    agent: str | Variant = "eea",
    parameters: Any = None,
    budget: Budget = UNLIMITED,
    rules: AnswerRules = USUAL,
    seen: PriorEvidence | None = None,
    on_event: Callable[[Event], None] = lambda event: None,
    stop: StopSignal | None = None,
) -> Answer:
    """Answer a question about the environment's videos; `on_event` receives every event as it happens.

    `agent` is a name, a `Variant`, or a spec as `registry.find_variant` takes it; `parameters` are of its own class,
    or a mapping of those that are not the default. `question` without options may be a text.
    `rules` say whether, and when, a model may find the evidence insufficient, and if answers have to be verified.
    A follow-up question, one with evidence `seen` before, is first tried on that alone.
    `stop` ends it from any thread, as a spent budget does.

    Raises `ModelError` if a model cannot be reached, `NeedsLanguage` if the agent needs one with language,
    `NeedsPictures` if it needs frames and a video has none, `BadAnswer` if it returns anything but an answer, or
    hangs. Of all of these `spent_until` is the bill.
    Bad replies and spent budgets do not raise: they are the answer's status.
    """
    chosen = find_variant(agent)
    parameters = _fitting(chosen, parameters, environment)
    unpictured = [video.title for video in environment.videos if not video.has_pictures]
    check_fit(chosen, has_language=_has_language(models), unpictured=unpictured)
    if not environment.videos:
        raise BadSettings("there is no video to ask about; ingest one, or name one that the library holds")
    limit = parameters.rounds if budget.rounds is None else min(budget.rounds, parameters.rounds)
    budget = replace(budget, rounds=limit)
    question = Question(question) if isinstance(question, str) else question
    question = question if seen is None else replace(question, earlier=seen.earlier)
    session = Session(question, environment, models, budget, on_event, rules, stop)
    if seen is not None and chosen.sees_video:
        session.prior_frames, session.prior_notes = seen.frames, seen.notes
    on_event(
        RunStarted(
            question,
            chosen.name,
            asdict(parameters),
            budget,
            environment.videos,
            environment.space,
            environment.index_frames,
            _names(models),
            rules,
        )
    )
    try:
        answer = await session.account.clock.count(_answered(session, chosen, parameters))
        answer = validate_answer(answer, question, environment)
    except Exception as error:
        error.__dict__["ledger"] = session.account.ledger  # the calls until then were paid all the same
        raise
    on_event(Finished(answer))
    return answer


def spent_until(error: BaseException) -> Ledger:
    """The bill of the question that `ask` ended with this error; an empty one if the error came before any call."""
    ledger = getattr(error, "ledger", None)
    return ledger if isinstance(ledger, Ledger) else Ledger()


async def _answered(session: Session, chosen: Variant, parameters: Any) -> Answer:
    gate = Gate(session) if session.rules.verify else None
    try:
        async with time_limit(lambda: HANG_S - session.account.idle_s) as hang:
            answer = await _search(session, chosen, parameters)
    except TimeoutError as error:
        if not hang.expired():
            raise
        raise BadAnswer(
            f"the agent {chosen.name!r} waited for {HANG_S:g} s for something that is no call of a model; "
            "let it ask through its session"
        ) from error
    return await gate.mark(answer) if gate else answer


async def _search(session: Session, chosen: Variant, parameters: Any) -> Answer:
    try:
        return await session.recall() or await chosen.run(session, parameters)
    except OutOfBudget as over:
        return await session.best_so_far(over=str(over))
    except NoUsableReply as end:
        return await session.best_so_far(reason=str(end))


@dataclass(frozen=True, slots=True)
class Task:
    """One of many questions, with what `ask` takes."""

    question: Question
    environment: Environment
    models: Models
    agent: str | Variant = "eea"
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
    free = asyncio.Semaphore(together)
    answers: list[Answer | None] = [None] * len(tasks)
    errors: dict[int, Exception] = {}
    unheard: set[Question] = set()

    async def answered(number: int, task: Task) -> None:
        async with free:
            if len(unheard) >= GONE_AFTER or any(isinstance(each, ENDS_ALL) for each in errors.values()):
                return
            try:
                answers[number] = await ask(
                    task.question,
                    task.environment,
                    task.models,
                    agent=task.agent,
                    parameters=task.parameters,
                    budget=task.budget,
                    rules=task.rules,
                    on_event=task.on_event,
                )
                unheard.clear()
            except Exception as error:
                errors[number] = error
                if isinstance(error, ModelUnreachable):
                    unheard.add(task.question)

    await gather_all([answered(number, task) for number, task in enumerate(tasks)])
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


def _fitting(chosen: Variant, parameters: Any, environment: Environment) -> Any:
    defaults = default_parameters(chosen, environment)
    if parameters is None or isinstance(parameters, Mapping):
        return with_settings(defaults, parameters or {})
    if type(parameters) is not type(defaults):
        raise BadSettings(
            f"{type(parameters).__name__} are not parameters of the agent {chosen.name!r}; "
            "leave them out for the defaults"
        )
    return parameters


def _has_language(models: Models) -> bool:
    """False if the policy has no language; a model without the attribute is taken to have one."""
    policy = model_for(models, "policy")
    return policy is None or getattr(policy, "has_language", True)


def _names(models: Models) -> Mapping[str, str]:
    if isinstance(models, Mapping):
        return {role: model.name for role, model in models.items()}
    return {"default": models.name}


def validate_answer(answer: object, question: Question, environment: Environment) -> Answer:
    """Return an agent's answer if it is one to a question about the environment's videos.

    Raises `BadAnswer` with the fault: stored as it is, such an answer could not be read again.
    """
    fault = f"{type(answer).__name__} instead of an Answer"
    if isinstance(answer, Answer):
        try:
            read: Answer = ANSWER.validate_python(asdict(answer))
        except ValidationError as error:
            first = error.errors()[0]
            fault = f"{'.'.join(map(str, first['loc']))} {str(first['input'])[:60]!r}: {first['msg']}"
        else:
            fault = _mismatch(read, question, {video.video_id for video in environment.videos})
            if not fault:
                return read
    raise BadAnswer(f"the agent returned {fault}; return the result of `session.conclude` or `session.answer`")


def _mismatch(answer: Answer, question: Question, videos: set[str]) -> str:
    if answer.option is not None and not 0 <= answer.option < len(question.options):
        return f"option {answer.option} of {len(question.options)}, counted from 0"
    wrong = next((it for it in answer.evidence if it.video_id not in videos or not it.start_s <= it.end_s), None)
    return f"{wrong}, which is no part of a video of this question" if wrong else ""
