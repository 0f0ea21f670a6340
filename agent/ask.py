"""Ask an agent one question."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any

from pydantic import TypeAdapter, ValidationError

from kinodex.agent.answer import Answer
from kinodex.agent.answer_rules import USUAL, AnswerRules
from kinodex.agent.catalogue import VARIANTS, check_fit, find_variant
from kinodex.agent.errors import BadAnswer, BadSettings, NoUsableReply, OutOfBudget, TakesNoPictures
from kinodex.agent.forced_choice import with_choice
from kinodex.agent.gate import Gate
from kinodex.agent.limits.account import Account
from kinodex.agent.limits.budget import UNLIMITED, Budget
from kinodex.agent.limits.ledger import Ledger
from kinodex.agent.limits.stop import StopSignal
from kinodex.agent.limits.work_clock import time_limit
from kinodex.agent.protocol.exchange import Models, model_for, policy_has_language
from kinodex.agent.protocol.question import Question
from kinodex.agent.session import Session
from kinodex.agent.traces.events import Acted, Event, Finished, RunStarted
from kinodex.agent.traces.prior_evidence import PriorEvidence
from kinodex.agent.traces.trace import record
from kinodex.agent.variants.base import Variant
from kinodex.agent.variants.settings import with_settings
from kinodex.agent.videos.environment import Environment

ANSWER = TypeAdapter(Answer)
HANG_S = 600.0
"""Time without a call in flight or anything computed after which an agent is taken to hang."""


def default_parameters(agent: str | Variant, environment: Environment) -> Any:
    """Default parameters of an agent; some depend on the longest video."""
    return find_variant(agent).parameters(max((video.duration_s for video in environment.videos), default=0.0))


async def ask(
    question: Question | str,
    environment: Environment,
    models: Models,
    *,
    agent: str | Variant = "kino",
    parameters: Any = None,
    budget: Budget = UNLIMITED,
    rules: AnswerRules = USUAL,
    seen: PriorEvidence | None = None,
    on_event: Callable[[Event], None] = lambda event: None,
    stop: StopSignal | None = None,
) -> Answer:
    """Answer a question about the environment's videos; `on_event` receives every event as it happens.

    `agent` is a name, a `Variant`, or a spec as `find_variant` takes it; `parameters` are of its own class,
    or a mapping of those that are not the default. `question` without options may be a text.
    `rules` say whether, and when, a model may find the evidence insufficient, and if answers have to be verified;
    where they leave it open the agent's paper does.
    A follow-up question, one with evidence `seen` before, is first tried on that alone.
    `stop` ends it from any thread, as a spent budget does.

    Raises `ModelError` if a model cannot be reached (`TakesNoPictures` before any call of an agent that looks at
    frames), `NeedsLanguage` if the agent needs one with language, `NeedsPictures` if it needs frames and a video has
    none, NoVectors if it needs theirs, `BadAnswer` if it returns anything but an answer, or hangs. Of all of these
    `spent_until` is the bill.
    Bad replies and spent budgets do not raise: they are the answer's status.
    """
    chosen = find_variant(agent)
    parameters = _fitting(chosen, parameters, environment)
    unpictured = [video.title for video in environment.videos if not video.has_pictures]
    has_language = policy_has_language(models)
    without_vectors = "" if environment.has_vectors else environment.source.uri
    check_fit(chosen, has_language=has_language, unpictured=unpictured, without_vectors=without_vectors)
    if not environment.videos:
        raise BadSettings("there is no video to ask about; ingest one, or name one that the library holds")
    limit = parameters.rounds if budget.rounds is None else min(budget.rounds, parameters.rounds)
    budget = replace(budget, rounds=limit)
    question = Question(question) if isinstance(question, str) else question
    question = question if seen is None else replace(question, earlier=seen.earlier)
    on_event = _in_words(chosen, on_event)
    rules = rules.of_agent(chooses=chosen.chooses and bool(question.options))
    session = Session(question, environment, models, budget, on_event, rules, stop)
    if seen is not None and chosen.sees_video:
        session.prior_frames, session.prior_notes = seen.frames, seen.notes
    library = environment.videos, environment.space, environment.index_frames
    on_event(RunStarted(question, chosen.name, asdict(parameters), budget, *library, _names(models), rules))
    try:
        if chosen.asks_for_sight:
            problem = await session.account.clock.count(_find_blindness(session.account, chosen, models))
            session.sees = problem is None
            if problem is not None and chosen.needs_pictures:
                raise _no_pictures(problem, chosen)
        answer = await session.account.clock.count(_answered(session, chosen, parameters))
        answer = await session.account.clock.count(with_choice(session, answer, models))
        answer = validate_answer(answer, question, environment)
    except Exception as error:
        error.__dict__["ledger"] = session.account.ledger  # the calls until then were paid all the same
        raise
    on_event(Finished(answer))
    return answer


def _in_words(chosen: Variant, on_event: Callable[[Event], None]) -> Callable[[Event], None]:
    """Give the steps of a plugin the words that it brings: who reads its trace later does not run its code."""
    if chosen in VARIANTS or not chosen.words:
        return on_event

    def emit(event: Event) -> None:
        if isinstance(event, Acted) and (words := chosen.words.get(event.action)):
            event = replace(event, words=words(record(event)))
        on_event(event)

    return emit


async def _find_blindness(account: Account, chosen: Variant, models: Models) -> TakesNoPictures | None:
    """Find out before the first call if none of an agent's models takes pictures; return what one says of them."""
    problem = None
    for model in {id(each): each for role in chosen.roles if (each := model_for(models, role))}.values():
        check = getattr(model, "check_sight", None)
        began = time.perf_counter()
        problem, usage = (None, None) if check is None else await check()
        if usage is not None:
            account.charge(usage, cached=False, invalid=False, seconds=time.perf_counter() - began)
        if problem is None:
            return None
    return problem


def _no_pictures(problem: TakesNoPictures, chosen: Variant) -> TakesNoPictures:
    captioned = [each.name for each in VARIANTS if {*each.roles} == {"policy", "captioner"}]
    return TakesNoPictures(
        f"{problem.what}, and the agent {chosen.name} looks at frames",
        "name a model with vision (or set images for its role, if it does see), or choose kino, which reads words in "
        f"their place, or one that works from captions, of which only the captioner has to see: {', '.join(captioned)}",
    )


def spent_until(error: BaseException) -> Ledger:
    ledger = getattr(error, "ledger", None)
    return ledger if isinstance(ledger, Ledger) else Ledger()


async def _answered(session: Session, chosen: Variant, parameters: Any) -> Answer:
    gate = Gate(session) if session.rules.verify else None
    try:
        async with time_limit(lambda: HANG_S - session.account.idle_s) as hang:
            try:
                answer = await session.recall() or await chosen.run(session, parameters)
            except OutOfBudget as over:
                answer = await session.best_so_far(over=str(over))
            except NoUsableReply as end:
                answer = await session.best_so_far(reason=str(end))
    except TimeoutError as error:
        if not hang.expired():
            raise
        raise BadAnswer(
            f"the agent {chosen.name!r} waited for {HANG_S:g} s for something that is no call of a model; "
            "let it ask through its session"
        ) from error
    return await gate.mark(answer) if gate else answer


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
