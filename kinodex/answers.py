"""Questions answered: models opened, asked and closed, events written and watched, for Python and the command line."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kinodex.agent.answer import Answer
from kinodex.agent.ask import UNLIMITED, ask, find_variant
from kinodex.agent.environment import Environment
from kinodex.agent.limits import Budget, StopSignal
from kinodex.agent.protocol import USUAL, AnswerRules, Models, Question
from kinodex.agent.trace import Event, Record, read_prior_evidence, trace_to
from kinodex.agent.variants.base import Variant, with_settings
from kinodex.jobs.ask_many import Task, ask_many
from kinodex.jobs.errors import UsageError
from kinodex.jobs.models import ModelChoice, check_known_world, check_sight, chosen_models, run_now

if TYPE_CHECKING:
    from kinodex.library import Library


@dataclass(frozen=True, slots=True)
class AskRequest:
    """All of a question beside its words and its videos.

    `models` are opened objects, or a choice to open. `settings` change the agent's parameters, from text or values.
    `follow_up` is the trace of an earlier question; `otlp` a collector that gets the run as spans. `on_record` gets
    each record once it is written to the trace.
    """

    models: Models | ModelChoice
    agent: str | Variant = "kino"
    settings: Mapping[str, Any] | None = None
    budget: Budget = UNLIMITED
    rules: AnswerRules = USUAL
    trace: Path | None = None
    follow_up: Path | None = None
    otlp: str | None = None
    on_event: Callable[[Event], None] | None = None
    on_record: Callable[[Record], None] = lambda record: None
    stop: StopSignal | None = None


@dataclass(frozen=True, slots=True)
class ShownAnswer(Answer):
    """The answer to a question about a library, which a notebook shows with the pictures of its evidence."""

    library: Library | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, answer: Answer, library: Library) -> ShownAnswer:
        return cls(**{each.name: getattr(answer, each.name) for each in fields(Answer)}, library=library)

    def _repr_html_(self) -> str:
        from kinodex.notebook import answer_html

        assert self.library is not None
        return answer_html(self, self.library)


def answer_now(environment: Environment, question: Question, request: AskRequest) -> Answer:
    """Answer one question; works where an event loop runs already, too. Raises as `answer` does."""
    return run_now(answer(environment, question, request))


async def answer(environment: Environment, question: Question, request: AskRequest) -> Answer:
    """Answer one question, and write its trace meanwhile; raises UsageError, or as `kinodex.ask` does."""
    trace, earlier = request.trace, request.follow_up
    if trace is not None and earlier is not None and trace.resolve() == earlier.resolve():
        raise UsageError(f"got {trace} for both trace and follow_up, which would overwrite it; give a new file")
    seen = None if earlier is None else read_prior_evidence(earlier, environment)
    with watched(request, environment.source.uri) as on_event:
        async with _opened(environment, request) as models:
            return await ask(
                question,
                environment,
                models,
                agent=request.agent,
                parameters=request.settings,
                budget=request.budget,
                rules=request.rules,
                seen=seen,
                on_event=on_event,
                stop=request.stop,
            )


@contextmanager
def watched(request: AskRequest, uri: str) -> Iterator[Callable[[Event], None]]:
    """The function that gets all events of a question: it writes the trace, and calls who watches."""
    with ExitStack() as opened:
        watchers = [] if request.on_event is None else [request.on_event]
        if request.trace is not None:
            try:
                watchers.append(opened.enter_context(trace_to(request.trace, request.on_record)))
            except OSError as error:
                raise unwritable(request.trace, error.strerror) from error
        if request.otlp is not None:
            from kinodex.jobs.telemetry import spans_to

            watch = opened.enter_context(spans_to(request.otlp))
            watchers.append(opened.enter_context(watch(uri)))

        def on_event(event: Event) -> None:
            for watcher in watchers:
                watcher(event)

        yield on_event


def answer_many(
    environment: Environment, questions: Sequence[Question], request: AskRequest, at_once: int
) -> list[Answer]:
    """Answer questions about the same videos, at most `at_once` together; the answers in their order."""

    async def run() -> list[Answer]:
        async with _opened(environment, request) as models:
            common = (environment, models, request.agent, request.settings, request.budget, request.rules)
            return await ask_many([Task(each, *common) for each in questions], at_once)

    return run_now(run())


def check_world(environment: Environment, agent: str | Variant, choice: ModelChoice) -> None:
    """Raise UsageError if a model would be asked by an agent about pictures that it does not know, or cannot see."""
    check_sight(choice, find_variant(agent))
    if find_variant(agent).roles:
        check_known_world(choice, environment.source.space, has_pictures=environment.has_pictures)


@asynccontextmanager
async def _opened(environment: Environment, request: AskRequest) -> AsyncIterator[Models]:
    if not isinstance(request.models, ModelChoice):
        yield request.models
        return
    check_world(environment, request.agent, request.models)
    async with chosen_models(request.models) as models:
        yield models(environment)


def videos_left_out(agent: str | Variant, settings: Mapping[str, Any], count: int) -> str | None:
    """Say that an agent looks at some of so many videos, chosen by search; None where it looks at all."""
    most = getattr(with_settings(find_variant(agent).parameters(0.0), settings), "videos", None)
    if not isinstance(most, int) or count <= most:
        return None
    return f"of {count:,} videos the {most} that fit the question best, by a search, are looked at"


def unwritable(trace: Path, problem: str | None) -> UsageError:
    """The error for a trace that cannot be written."""
    return UsageError(f"cannot write the trace {trace}: {problem}; give another file")
