"""Questions answered in plain functions: models opened, asked and closed, with an event loop that nobody has to see."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kinodex.agent.answer import Answer
from kinodex.agent.ask import Task, ask, ask_many, find_variant
from kinodex.agent.environment import Environment
from kinodex.agent.limits import Budget, StopSignal
from kinodex.agent.protocol import AnswerRules, Models, Question
from kinodex.agent.trace import Event, read_prior_evidence, trace_to
from kinodex.agent.variants.base import Variant
from kinodex.jobs.errors import UsageError
from kinodex.jobs.models import ModelChoice, check_known_world, chosen_models
from kinodex.jobs.run_now import run_now


@dataclass(frozen=True, slots=True)
class AskArguments:
    """The arguments of `Library.ask` beside the question and its videos: agent, model, budget and files."""

    model: str | Models
    base_url: str | None
    agent: str | Variant
    parameters: Mapping[str, Any] | None
    budget: Budget | None
    rules: AnswerRules
    anyway: bool
    cache: bool
    trace: Path | None
    after: Path | None
    on_event: Callable[[Event], None]
    stop: StopSignal | None = None


def answer_one(environment: Environment, question: Question, request: AskArguments) -> Answer:
    """Answer one question; `request.trace` is written while it is answered."""
    if request.trace is not None and request.after is not None and request.trace.resolve() == request.after.resolve():
        raise UsageError(f"got {request.trace} for both trace and after, which would overwrite it; give a new file")
    seen = None if request.after is None else read_prior_evidence(request.after, environment)

    async def answer() -> Answer:
        async with _models(environment, request) as models:
            with nullcontext() if request.trace is None else trace_to(request.trace) as write:

                def watch(event: Event) -> None:
                    if write is not None:
                        write(event)
                    request.on_event(event)

                return await ask(
                    question,
                    environment,
                    models,
                    agent=request.agent,
                    parameters=request.parameters,
                    budget=request.budget or Budget(),
                    rules=request.rules,
                    seen=seen,
                    on_event=watch,
                    stop=request.stop,
                )

    return run_now(answer())


def answer_many(
    environment: Environment, questions: Sequence[Question], request: AskArguments, together: int
) -> list[Answer]:
    """Answer questions about the same videos, at most `together` at once; the answers in their order."""

    async def answer() -> list[Answer]:
        async with _models(environment, request) as models:
            budget = request.budget or Budget()
            common = (environment, models, request.agent, request.parameters, budget, request.rules)
            tasks = [Task(each, *common) for each in questions]
            return await ask_many(tasks, together)

    return run_now(answer())


@asynccontextmanager
async def _models(environment: Environment, request: AskArguments) -> AsyncIterator[Models]:
    """The models of a request: objects as they are, names as the command line takes them."""
    if not isinstance(request.model, str):
        if request.base_url is not None:
            raise UsageError("got base_url beside a model object, which knows its own; give the model's name instead")
        yield request.model
        return
    choice = ModelChoice(request.model, request.base_url, cache=request.cache, anyway=request.anyway)
    if find_variant(request.agent).roles:
        check_known_world(choice, environment.source.space, has_pictures=environment.has_pictures)
    async with chosen_models(choice) as models:
        yield models(environment)
