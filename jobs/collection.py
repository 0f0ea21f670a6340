"""A question to a whole collection: a plan, a table filled in film by film, an answer from its rows. `ask --agent all`.

The table is an extract (`kinodex.jobs.add.extract`), made for the question and kept with its plan: so it can be gone on
with after a kill, is paid once, and is read by `kinodex sql`. Films are candidates by what a search finds for the
plan's words; the answer says which were not looked at.

answer = ask_collection(library, CollectionRequest("In which films does someone fall?", ModelChoice("gpt-4o-mini")))
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pydantic import ValidationError

from kinodex.agent.answer import Answer
from kinodex.agent.attempts import Outcome, ask_checked
from kinodex.agent.errors import BadSettings, InvalidReply
from kinodex.agent.evidence import Evidence
from kinodex.agent.limits.budget import Budget
from kinodex.agent.limits.ledger import Ledger
from kinodex.agent.limits.stop import StopSignal
from kinodex.agent.models.roles import DEFAULT_ROLE, Role
from kinodex.agent.protocol.exchange import Usage
from kinodex.agent.protocol.notes import Note
from kinodex.agent.protocol.question import Question
from kinodex.agent.protocol.reply import R
from kinodex.agent.protocol.request import Request
from kinodex.agent.protocol.videos import Video
from kinodex.agent.requests.collection import (
    FOUND,
    AnswerFromRows,
    CollectionPlan,
    PlanCollection,
    PlannedField,
)
from kinodex.agent.requests.extract import ExtractRows
from kinodex.agent.requests.row_schema import read_schema
from kinodex.agent.traces.events import Acted, Event, Finished, RunStarted
from kinodex.agent.variants.base import Variant
from kinodex.agent.variants.settings import with_settings
from kinodex.agent.videos.environment import Environment
from kinodex.index.durations import counted
from kinodex.index.errors import LibraryBusy, QueryError
from kinodex.index.library import Library
from kinodex.index.named_files import read_bytes
from kinodex.index.nesting import parse_json
from kinodex.index.rows import VideoRow
from kinodex.index.sql import query
from kinodex.index.store.schema import COMMON_COLUMNS, extracts_schema
from kinodex.jobs.add.extract import arrow_columns
from kinodex.jobs.add.run import VideoOutcome, add, pending_videos
from kinodex.jobs.add.stages import Extracts
from kinodex.jobs.batch import Purse
from kinodex.jobs.costs import Forecast, of_requests
from kinodex.jobs.errors import CostReached, UsageError, check_packages
from kinodex.jobs.models import ModelChoice, endpoint_roles, open_local, open_model, run_now

if TYPE_CHECKING:
    from kinodex.agent.session import Session

AGENT = "all"
"""The name of this way to answer in traces, where agents have theirs."""
NAME = "asked_{}"
PLAN, LOOK = PAID = ("plan", "look")
"""Actions in a trace whose cost is among their arguments: the plan, and each film."""
WHICH = f"SELECT title, count(*) AS times FROM {FOUND} GROUP BY video_id, title ORDER BY times DESC, title"
SHORT_S = 120.0
"""Films up to this length are looked at whole by the default plan, longer ones where the search finds something."""
ROWS_READ = 300
"""Rows that a model is given at most to answer from."""
SHOWN = 20
"""Rows of a result that the answer has in words."""
WAIT_S, WAITED = 3.0, 30
"""Seconds until the library is tried again that another run holds, and how often a stop is looked for meanwhile."""
LIMITED = ("cost", "seconds")
"""The budgets that hold here."""


@dataclass(frozen=True, slots=True)
class CollectionSettings:
    """Settings of a question to a whole collection."""

    candidates: int = 100
    """Films that are looked at, those that fit the plan's words best; 0: all."""
    frames_a_part: int = 8
    """Frames that the model is shown of a film, a scene, or a moment."""
    lines_a_part: int = 60
    """Lines of it, said, on screen and captions, that the model is given."""
    hits: int = 5
    """Moments of a film that are looked at, where the plan asks for moments."""
    at_once: int = 0
    """Requests under way together; 0: as many as the model's role says."""
    retry_failed: bool = False
    """Ask again about films of which no reply could be used."""


@dataclass(frozen=True, slots=True)
class CollectionRequest:
    """All of a question to a collection; `videos` are names, none: all. `plan` takes the place of the model's own."""

    question: str
    choice: ModelChoice
    videos: Sequence[str] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    plan: CollectionPlan | None = None
    budget: Budget = field(default_factory=Budget)
    on_event: Callable[[Event], None] = lambda event: None
    stop: StopSignal | None = None


async def _one_film(session: Session, parameters: object) -> Answer:
    raise BadSettings(f"got the agent {AGENT}, which looks at a whole library; ask it by `ask`, not film by film")


ALL = Variant(
    name=AGENT,
    line="a table that a model fills in film by film, by a plan; SQL or a model answers from its rows",
    run=_one_film,
    parameters=lambda longest_s: CollectionSettings(),
    roles=(PlanCollection.role, ExtractRows.role),
    needs_language=True,
    plain="Looks at every film that may matter, one by one, and counts: in which, how often, how many in all.",
)
"""This way to answer, listed beside the agents."""


def plan_of(given: object) -> CollectionPlan:
    """Return the plan that JSON values hold; raises UsageError."""
    try:
        return CollectionPlan.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise UsageError(f"got a plan with {where}: {first['msg']}; give one as an answer's `plan` has it") from error


def read_plan(path: Path) -> object:
    """Read a plan from a file: a JSON object, or an answer's with one. Raises UsageError."""
    try:
        content = parse_json(read_bytes(path))
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read the plan {path}: {error}; give what --json prints of a plan") from error
    return content.get("plan", content) if isinstance(content, dict) else content


@dataclass(frozen=True, slots=True)
class FilmFound:
    """A film with rows that count: how many, and the moments that show them."""

    video_id: str
    title: str
    times: int
    moments: tuple[Evidence, ...]


@dataclass(frozen=True, slots=True)
class NotLooked:
    """Films that were not looked at, and why; without a number of films, what of each was not."""

    why: str
    films: int | None = None

    def __str__(self) -> str:
        return self.why if self.films is None else f"{counted(self.films, 'film')} {self.why}"


@dataclass(frozen=True, slots=True)
class CollectionAnswer(Answer):
    """An answer from a whole collection: its `text` has all in words, the rest the same as data.

    `columns` and `rows` are the result of the plan's SELECT; `extract` the table that holds all rows.
    """

    plan: CollectionPlan | None = None
    plan_from: str = ""
    """"model", "library" (of the same question before), "file", or "default" where the model gave none."""
    extract: str = ""
    looked_at: int = 0
    films: tuple[FilmFound, ...] = ()
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()
    not_looked_at: tuple[NotLooked, ...] = ()

    @property
    def as_answer(self) -> Answer:
        """The same as answers of agents are."""
        return Answer(**{each.name: getattr(self, each.name) for each in fields(Answer)})


@dataclass(slots=True)
class _Asker:
    """One question on its way: its library, `videos` those that are asked about, and its bill so far.

    `among` reads these alone. Tables are written by the whole library: what it hid would pass for leftovers.
    """

    library: Library
    among: Library
    videos: Sequence[VideoRow]
    request: CollectionRequest
    settings: CollectionSettings
    usage: Usage = field(default_factory=Usage)
    calls: int = 0
    invalid: int = 0
    began: float = field(default_factory=time.monotonic)
    plan_from: str = "library"
    rounds: int = 0

    def over(self) -> str | None:
        """The reason why nothing further may be asked, if there is one."""
        budget, stop = self.request.budget, self.request.stop
        if stop is not None and (reason := stop.over()):
            return reason
        if budget.seconds is not None and time.monotonic() - self.began >= budget.seconds:
            return "seconds"
        return "cost" if self.purse.is_empty else None

    @property
    def purse(self) -> Purse:
        """The money of the question."""
        return Purse(self.request.budget.cost, self.usage.cost)

    def emit(self, round_: int, action: str, words: str, **arguments: Any) -> None:
        """Say what was done."""
        self.rounds = max(self.rounds, round_)
        self.request.on_event(Acted(round_, action, arguments, words=words))

    def waits(self) -> None:
        """Say that another extract is being filled in; raises _Ended once nothing further may be asked."""
        self.emit(2, "wait", "waits until another table of films is filled in")
        for _ in range(WAITED):
            if reason := self.over():
                raise _Ended(reason)
            time.sleep(WAIT_S / WAITED)

    def ask(self, asked: Request[R], role: Role | None) -> R | None:
        """The reply of the model of a role to one request, None if none could be used."""
        outcome = run_now(_ask_once(self.request.choice, role, asked))
        self.usage += outcome.usage
        self.calls += outcome.calls
        self.invalid += outcome.invalid
        return outcome.given


def ask_collection(library: Library, request: CollectionRequest) -> CollectionAnswer:
    """Answer a question by looking at each film of a library that may matter, in four steps that `on_event` gets.

    Waits while another extract of the library is filled in. Raises UsageError or BadSettings for what makes no sense,
    ModelError for a model that gives no reply. A spent budget is no error: the answer says what it did not look at.
    """
    check_packages("duckdb")
    asker = _asker(library, request)
    roles = roles_of(request.choice)
    _started(asker, roles)
    plan = _planned(asker, roles)
    asker.emit(1, PLAN, plan_words(plan, asker.plan_from), cost=asker.usage.cost, **plan_facts(plan))
    stage = stage_of(asker.settings, request, plan, roles)
    chosen = candidates(asker, plan)
    to_ask = _pending(asker.library, stage, chosen)
    asker.emit(2, "choose", _choice_words(chosen, asker.videos, to_ask), films=len(chosen), new=len(to_ask))
    ended = _filled(asker, stage, chosen)
    answer = _reduced(asker, plan, stage, chosen, roles, ended)
    request.on_event(Finished(answer.as_answer))
    return answer


def bill(library: Library, request: CollectionRequest) -> tuple[CollectionPlan, str, list[VideoRow], list[Forecast]]:
    """The plan and where it is from, the films that would be looked at, and the costs; nothing is asked.

    A plan that only the model can give is assumed to be the default one.
    """
    asker = _asker(library, request)
    roles = roles_of(request.choice)
    known = _known_plan(asker, roles)
    plan = known or default_plan(request.question, asker.videos)
    asker.plan_from = asker.plan_from if known else "default"
    stage = stage_of(asker.settings, request, plan, roles)
    chosen = candidates(asker, plan)
    asked = [] if known else [plan_request(asker)]
    costs = [of_requests("plan", asked, stage.role)] if asked and stage.base_url else []
    if stage.base_url:
        films = stage.writer(asker.library).costs(_pending(asker.library, stage, chosen))
        costs.append(replace(films, system="films"))
    return plan, asker.plan_from, chosen, costs


def _asker(library: Library, request: CollectionRequest) -> _Asker:
    given = [name for name in ("rounds", "frames", "tokens") if getattr(request.budget, name) is not None]
    if given:
        raise UsageError(
            f"got a budget of {given[0]}, which a question to a whole collection has not; limit its {LIMITED[0]} or "
            f"{LIMITED[1]}, or how many films it looks at (candidates)"
        )
    Question(request.question)
    videos = library.chosen(request.videos)
    if not videos:
        raise UsageError(f"{library.uri} holds no video to ask about; ingest one first")
    return _Asker(
        Library.open(library.uri), library, videos, request, with_settings(CollectionSettings(), request.settings)
    )


def _started(asker: _Asker, roles: Mapping[str, Role]) -> None:
    library, request, videos = asker.library, asker.request, asker.videos
    known = [Video(row.video_id, row.title, row.start_s, row.duration_s, bool(row.frames)) for row in videos]
    models = {name: role.model for name, role in roles.items()} or {DEFAULT_ROLE: request.choice.model}
    settings = {each.name: getattr(asker.settings, each.name) for each in fields(asker.settings)}
    frames = sum(row.frames for row in videos)
    facts = AGENT, settings, request.budget, tuple(known), str(library.space()), frames, models
    request.on_event(RunStarted(Question(request.question), *facts))


# The models: the policy plans and answers, the captioner fills in rows.


def roles_of(choice: ModelChoice) -> dict[str, Role]:
    """Settings of the models behind endpoints by role; none for a language model in this process.

    Raises UsageError for the built-in model, and for traces.
    """
    roles = endpoint_roles(choice)
    if not roles and not choice.is_local:
        raise UsageError(
            f"got the model {choice.model} for a question to all films, which a language model has to plan and answer; "
            "name one with --model NAME --base-url URL, or constrained:FOLDER, which sees no frames"
        )
    return roles


def _role(roles: Mapping[str, Role], name: str) -> Role | None:
    return roles.get(name) or roles.get(DEFAULT_ROLE)


async def _ask_once(choice: ModelChoice, role: Role | None, request: Request[R]) -> Outcome[R]:
    """Open the model of a role, or the one in this process, and ask it."""
    if role is None:
        return await ask_checked(open_local(choice.model), request)
    async with open_model(role) as model:
        return await ask_checked(model, request)


# The plan: given, kept from before, the model's, or the default one.


def _planned(asker: _Asker, roles: Mapping[str, Role]) -> CollectionPlan:
    known = _known_plan(asker, roles)
    if known is not None:
        return known
    plan = asker.ask(plan_request(asker), _role(roles, PlanCollection.role))
    asker.plan_from = "default" if plan is None else "model"
    return plan or default_plan(asker.request.question, asker.videos)


def _known_plan(asker: _Asker, roles: Mapping[str, Role]) -> CollectionPlan | None:
    if asker.request.plan is not None:
        try:
            try_plan(asker.library, asker.request.plan)
        except InvalidReply as error:
            raise UsageError(f"the plan cannot be carried out: {error}") from error
        asker.plan_from = "file"
        return asker.request.plan
    role = _role(roles, ExtractRows.role)
    asks = asker.request.choice.model if role is None else role.model
    kept = [each.definition for each in asker.library.extracts.versions(table_name(asker.request.question))]
    plans = [each["plan"] for each in kept if each.get("model") == asks and each.get("plan")]
    return CollectionPlan.model_validate_json(plans[-1]) if plans else None


def table_name(question: str) -> str:
    """The name of the table of a question, the same for the same words."""
    return NAME.format(hashlib.sha256(" ".join(question.split()).casefold().encode()).hexdigest()[:8])


def plan_request(asker: _Asker) -> PlanCollection:
    """The request for a plan, whose reply is tried on a table without rows."""
    library = asker.library
    columns = tuple(f"{name} ({kind})" for name, kind in library.metadata.columns().items())
    return PlanCollection.tried_by(lambda plan: try_plan(library, plan))(
        question=Question(asker.request.question),
        films=len(asker.videos),
        typical_s=median(row.duration_s for row in asker.videos),
        columns=columns,
    )


def default_plan(question: str, videos: Sequence[VideoRow]) -> CollectionPlan:
    """The plan where a model gives none: each time that a film shows what is asked for, in words; the films by it."""
    is_short = median(row.duration_s for row in videos) <= SHORT_S
    return CollectionPlan(
        search=question,
        row=f"one time that this is seen or said: {question}",
        fields=[PlannedField(name="shown", kind="text", meaning="what is seen or said of it, in a few words")],
        each="video" if is_short else "moments",
        condition=None,
        select=WHICH,
    )


def try_plan(library: Library, plan: CollectionPlan) -> None:
    """Carry a plan out on a table without rows; raises InvalidReply, which says what is wrong with it."""
    try:
        columns = arrow_columns(read_schema(plan.schema_of_rows, [*COMMON_COLUMNS, "title"]))
    except BadSettings as error:
        raise InvalidReply(str(error)) from error
    empty = extracts_schema(columns).append(pa.field("title", pa.string())).empty_table()
    if len({each.name.lower() for each in plan.fields}) < len(plan.fields):
        raise InvalidReply("two fields have one name; name each otherwise")
    try:
        _selected(library, plan, empty)
    except QueryError as error:
        raise InvalidReply(str(error).replace(f" of {library.uri}", "")) from error


def plan_facts(plan: CollectionPlan) -> dict[str, Any]:
    """A plan as JSON, without the model's reasons."""
    return plan.model_dump(mode="json", exclude={"reasoning"})


PARTS = {
    "video": "each film as a whole",
    "scene": "each scene of a film",
    "moments": "what the words find in each film",
}
FROM = {
    "model": "by the model",
    "library": "as it was for the same question before",
    "file": "as it was given",
    "default": "the default, since the model gave none that can be carried out",
}


def plan_words(plan: CollectionPlan, plan_from: str) -> str:
    """A plan in words, for people."""
    columns = ", ".join(f"{each.name} ({each.kind})" for each in plan.fields)
    counts = f", of which those count where {plan.condition}" if plan.condition else ""
    by = plan.select or "a model, which reads the rows"
    return (
        f"planned, {FROM[plan_from]}: look for “{plan.search}”; show a model {PARTS[plan.each]}; a row is {plan.row} "
        f"({columns}){counts}; answer by {by}"
    )


# The films: chosen by search, then shown to the model one by one.


def candidates(asker: _Asker, plan: CollectionPlan) -> list[VideoRow]:
    """The videos that fit the plan's words best, at most as many as the settings say, by title."""
    most, videos = asker.settings.candidates, asker.videos
    if not most or len(videos) <= most:
        return list(videos)
    environment = Environment.of(asker.among, videos, asker.library.text_tower.embed_text)
    near = {video.video_id for video in environment.nearest([plan.search], most).videos}
    return [row for row in videos if row.video_id in near]


def stage_of(
    settings: CollectionSettings, request: CollectionRequest, plan: CollectionPlan, roles: Mapping[str, Role]
) -> Extracts:
    """The extract that a plan asks for, by the model of the role that looks."""
    role = _role(roles, ExtractRows.role)
    part: dict[str, Any] = {"each": plan.each}
    if plan.each == "moments":
        part = {"search": plan.search, "hits": settings.hits}
    served: dict[str, Any] = {"model": request.choice.model, "batch": 1}
    if role is not None:
        at_once = settings.at_once or role.at_once
        asked_as = role.model_copy(update={"at_once": at_once})
        served = {"model": role.model, "batch": at_once, "base_url": role.base_url, "asked_as": asked_as}
    return Extracts(
        row=plan.schema_of_rows,
        into=table_name(request.question),
        **served,
        **part,
        frames_a_part=settings.frames_a_part,
        lines_a_part=settings.lines_a_part,
        retry_failed=settings.retry_failed,
        question=request.question,
        plan=json.dumps(plan_facts(plan)),
    )


def _pending(library: Library, stage: Extracts, chosen: Sequence[VideoRow]) -> list[VideoRow]:
    ids = [row.video_id for row in chosen]
    return pending_videos(library, stage.key, ids, stage.writer(library).again(), stage.name)


class _Ended(Exception):
    """A budget is spent, or somebody stopped it: what came is kept."""


def _filled(asker: _Asker, stage: Extracts, chosen: Sequence[VideoRow]) -> str | None:
    """Fill in the rows of films that lack them; the reason why it ended before the last, if it did."""
    library, left = asker.library, asker.purse.left

    def watch(done: int, total: int, outcome: VideoOutcome) -> None:
        asker.usage += outcome.usage
        asker.calls += outcome.calls
        asker.invalid += outcome.invalid
        said = outcome.problem or counted(outcome.rows, "row")
        words = f"looked at {outcome.title} ({done:,} of {total:,}): {said}"
        asker.emit(2 + done, LOOK, words, cost=outcome.usage.cost)
        if reason := asker.over():
            raise _Ended(reason)

    if reason := asker.over():
        return reason
    ids = [row.video_id for row in chosen]
    try:
        while True:
            try:
                add(library, stage.model_copy(update={"stop_at_cost": left}), ids, watch)
                return None
            except LibraryBusy:
                asker.waits()
    except CostReached:
        return "cost"
    except _Ended as end:
        return str(end)


# The answer: rows that count, by SQL or by a model.


def _reduced(
    asker: _Asker,
    plan: CollectionPlan,
    stage: Extracts,
    chosen: Sequence[VideoRow],
    roles: Mapping[str, Role],
    ended: str | None,
) -> CollectionAnswer:
    library = asker.library
    ids = [row.video_id for row in chosen]
    held = library.extracts.rows(stage.key, ids)
    seen = {id_ for id_, models in library.visible.models(stage.name, ids).items() if stage.key in models}
    faulty = {row["video_id"] for row in held.filter(held["fault"].is_valid()).to_pylist()}
    titles = {row.video_id: row.title for row in chosen}
    rows = held.filter(held["fault"].is_null())
    looked_at = len(seen - (faulty - set(rows["video_id"].to_pylist())))
    rows = rows.append_column("title", pa.array([titles[each] for each in rows["video_id"].to_pylist()], pa.string()))
    problem, counting, result = _carried_out(library, plan, rows)
    said = None
    if result is None and ended is None:
        said, counting = _said(asker, plan, counting, looked_at, roles)
    films = _films(counting, titles)
    text = said or f"In {len(films):,} of {counted(looked_at, 'film')} that were looked at"
    if said is None:
        shown = result if result is not None else query(library, WHICH, {FOUND: counting}).to_arrow_table()
        text += f": {in_words(shown)}." if shown.num_rows else "."
    left_out = not_looked_at(asker, plan, stage, len(chosen) - len(seen), len(chosen), len(faulty), ended, problem)
    missing = f"Not looked at: {'; '.join(map(str, left_out))}."
    return CollectionAnswer(
        status="budget_exhausted" if ended else "answered" if looked_at else "insufficient_evidence",
        text=f"{text}\n\n{missing}" if looked_at else None,
        option=None,
        evidence=tuple(moment for film in films for moment in film.moments),
        rounds=asker.rounds,
        ledger=_ledger(asker),
        reason=ended or ("" if looked_at else missing),
        plan=plan,
        plan_from=asker.plan_from,
        extract=stage.key,
        looked_at=looked_at,
        films=films,
        columns=tuple(result.column_names) if result is not None else (),
        rows=_values(result) if result is not None else (),
        not_looked_at=left_out,
    )


def _carried_out(library: Library, plan: CollectionPlan, rows: pa.Table) -> tuple[str, pa.Table, pa.Table | None]:
    """The rows that count and the result of the plan's SELECT, None where a model answers; and what went wrong.

    A SELECT that the values of real rows stop (a division by 0) is one that counts by film instead.
    """
    try:
        return "", *_selected(library, plan, rows)
    except QueryError as error:
        result = query(library, WHICH, {FOUND: rows}).to_arrow_table()
        return f"the plan's SQL could not be run on the rows ({error}), which are counted by film instead", rows, result


def _selected(library: Library, plan: CollectionPlan, rows: pa.Table) -> tuple[pa.Table, pa.Table | None]:
    if plan.condition is not None:
        where = f"SELECT * FROM {FOUND} WHERE ({plan.condition})"
        counting = query(library, where, {FOUND: rows}).to_arrow_table()
        if counting.column_names != rows.column_names:
            raise QueryError(f"got the condition {plan.condition!r}; give one expression over the fields")
        rows = counting
    if plan.select is None:
        return rows, None
    return rows, query(library, plan.select, {FOUND: rows}).to_arrow_table()


def _films(counting: pa.Table, titles: Mapping[str, str]) -> tuple[FilmFound, ...]:
    """The films with rows that count, those with the most first."""
    times: Counter[str] = Counter(counting["video_id"].to_pylist())
    moments: dict[str, dict[Evidence, None]] = {id_: {} for id_ in times}
    for row in counting.to_pylist():
        start_s, end_s = row["evidence_start_s"], row["evidence_end_s"]
        start_s, end_s = (row["start_s"], row["end_s"]) if start_s is None else (start_s, end_s)
        moments[row["video_id"]][Evidence(row["video_id"], start_s, end_s)] = None
    found = [FilmFound(id_, titles[id_], count, tuple(moments[id_])) for id_, count in times.items()]
    return tuple(sorted(found, key=lambda each: (-each.times, each.title)))


def _said(
    asker: _Asker,
    plan: CollectionPlan,
    counting: pa.Table,
    looked_at: int,
    roles: Mapping[str, Role],
) -> tuple[str | None, pa.Table]:
    """The answer of a model that reads the rows, None if it gave none that can be used, and the rows that it cites."""
    names = [each.name.lower() for each in plan.fields]
    notes = [
        Note(
            row["video_id"],
            row["start_s"],
            row["end_s"],
            "row",
            f"“{row['title']}”: " + ", ".join(f"{name} {row[name]}" for name in names if row[name] is not None),
        )
        for row in counting.to_pylist()
    ]
    shown = tuple(notes[:ROWS_READ])
    asked = AnswerFromRows(question=Question(asker.request.question), notes=shown, looked_at=looked_at)
    reply = asker.ask(asked, _role(roles, AnswerFromRows.role))
    more = f" (by the first {ROWS_READ} of {len(notes):,} rows)" if len(notes) > ROWS_READ else ""
    if reply is None:
        return None, counting
    cited = sorted({number - 1 for number in reply.evidence})
    return f"{reply.said.strip()}{more}", counting.take(pa.array(cited, pa.int64())) if cited else counting


def in_words(result: pa.Table) -> str:
    """The rows of a result in words, of many the first."""
    rows = result.to_pylist()
    if len(rows) == 1:
        return ", ".join(f"{name} {_plain(value)}" for name, value in rows[0].items())
    lines = []
    for row in rows:
        (_, first), *others = row.items()
        rest = ", ".join(f"{name} {_plain(value)}" for name, value in others if value is not None)
        lines.append(f"{_plain(first)} ({rest})" if rest else _plain(first))
    more = f"; and {len(lines) - SHOWN:,} more" if len(lines) > SHOWN else ""
    return "; ".join(lines[:SHOWN]) + more


def _values(result: pa.Table) -> tuple[tuple[Any, ...], ...]:
    return tuple(tuple(map(_number, row.values())) for row in result.to_pylist())


def _number(value: Any) -> Any:
    """A value of SQL; sums of whole numbers, which are wider there, as Python has them."""
    return (int(value) if value == int(value) else float(value)) if isinstance(value, Decimal) else value


def _plain(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def not_looked_at(
    asker: _Asker,
    plan: CollectionPlan,
    stage: Extracts,
    unseen: int,
    chosen: int,
    faulty: int,
    ended: str | None,
    problem: str,
) -> tuple[NotLooked, ...]:
    """Films, and parts of them, that the answer does not rest on; the numbers are of films."""
    settings, whole, among = asker.settings, asker.library.count_videos(), len(asker.videos)
    by = asker.among.condition
    between = f"between the {settings.frames_a_part} frames that the model was given"
    if stage.base_url is None or not settings.frames_a_part:
        between = "and no line says, since the model was given no frame"
    of_each = {
        "video": f"what each film shows {between}",
        "scene": f"what each scene shows {between}",
        "moments": f"what each film holds beside the {settings.hits} moments that fit the words best",
    }
    spent = {"cost": "left when the money was spent", "seconds": "left when the time was up"}
    why = f"{spent.get(ended, 'left when it was stopped')}; ask again to go on" if ended else "without a reply"
    found = [
        NotLooked("not asked about" + (f", by {by}" if by else ""), whole - among),
        NotLooked(f"beyond the {settings.candidates} that fit the words best (candidates=0: all)", among - chosen),
        NotLooked(why, unseen),
        NotLooked("of which no reply could be used, in whole or in part (retry_failed=true asks again)", faulty),
    ]
    parts = [NotLooked(of_each[plan.each]), *([NotLooked(problem)] if problem else [])]
    return (*(each for each in found if each.films), *parts)


def _ledger(asker: _Asker) -> Ledger:
    usage = asker.usage
    return Ledger(
        index_frames=sum(row.frames for row in asker.videos),
        calls=asker.calls,
        invalid_replies=asker.invalid,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cached_tokens=usage.cached_tokens,
        cost=usage.cost,
        seconds=time.monotonic() - asker.began,
        unknown_calls=usage.unknown_calls,
        estimated_tokens=usage.estimated_tokens,
    )


def _choice_words(chosen: Sequence[VideoRow], videos: Sequence[VideoRow], to_ask: Sequence[VideoRow]) -> str:
    known = len(chosen) - len(to_ask)
    before = f", {known:,} of which were looked at before" if known else ""
    return f"chose {len(chosen):,} of {counted(len(videos), 'film')}{before}"
