"""The plan of a question: given, kept from before, the model's, or the default one."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa
from pydantic import ValidationError

from kinodex.agent.errors import BadSettings, InvalidReply
from kinodex.agent.models.roles import Role
from kinodex.agent.protocol.question import Question
from kinodex.agent.requests.collection import FOUND, CollectionPlan, PlanCollection, PlannedField
from kinodex.agent.requests.extract import ExtractRows
from kinodex.agent.requests.row_schema import read_schema
from kinodex.index.errors import QueryError
from kinodex.index.library import Library
from kinodex.index.named_files import read_bytes
from kinodex.index.nesting import parse_json
from kinodex.index.rows import VideoRow
from kinodex.index.sql import query
from kinodex.index.store.schema import COMMON_COLUMNS, extracts_schema
from kinodex.jobs.add.extract import arrow_columns
from kinodex.jobs.collection.asker import Asker, role_of
from kinodex.jobs.errors import UsageError

NAME = "asked_{}"

WHICH = f"SELECT title, count(*) AS times FROM {FOUND} GROUP BY video_id, title ORDER BY times DESC, title"
SHORT_S = 120.0
"""Films up to this length are looked at whole by the default plan, longer ones where the search finds something."""


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


def make_plan(asker: Asker, roles: Mapping[str, Role]) -> CollectionPlan:
    known = known_plan(asker, roles)
    if known is not None:
        return known
    plan = asker.ask(plan_request(asker), role_of(roles, PlanCollection.role))
    asker.plan_from = "default" if plan is None else "model"
    return plan or default_plan(asker.request.question, asker.videos)


def known_plan(asker: Asker, roles: Mapping[str, Role]) -> CollectionPlan | None:
    if asker.request.plan is not None:
        try:
            try_plan(asker.library, asker.request.plan)
        except InvalidReply as error:
            raise UsageError(f"the plan cannot be carried out: {error}") from error
        asker.plan_from = "file"
        return asker.request.plan
    role = role_of(roles, ExtractRows.role)
    asks = asker.request.choice.model if role is None else role.model
    kept = [each.definition for each in asker.library.extracts.versions(table_name(asker.request.question))]
    plans = [each["plan"] for each in kept if each.get("model") == asks and each.get("plan")]
    return CollectionPlan.model_validate_json(plans[-1]) if plans else None


def table_name(question: str) -> str:
    """Return the name of the table of a question, the same for the same words."""
    return NAME.format(hashlib.sha256(" ".join(question.split()).casefold().encode()).hexdigest()[:8])


def plan_request(asker: Asker) -> PlanCollection:
    """Return the request for a plan, whose reply is tried on a table without rows."""
    library = asker.library
    columns = tuple(f"{name} ({kind})" for name, kind in library.metadata.columns().items())
    return PlanCollection.tried_by(lambda plan: try_plan(library, plan))(
        question=Question(asker.request.question),
        films=len(asker.videos),
        typical_s=median(row.duration_s for row in asker.videos),
        columns=columns,
    )


def default_plan(question: str, videos: Sequence[VideoRow]) -> CollectionPlan:
    """Return the plan where a model gives none: each time that a film shows what is asked for, in words.

    Its SQL lists the films.
    """
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
        select_rows(library, plan, empty)
    except QueryError as error:
        raise InvalidReply(str(error).replace(f" of {library.uri}", "")) from error


def plan_facts(plan: CollectionPlan) -> dict[str, Any]:
    """Return a plan as JSON, without the model's reasons."""
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
    """Return a plan in words, for people."""
    columns = ", ".join(f"{each.name} ({each.kind})" for each in plan.fields)
    counts = f", of which those count where {plan.condition}" if plan.condition else ""
    by = plan.select or "a model, which reads the rows"
    return (
        f"planned, {FROM[plan_from]}: look for “{plan.search}”; show a model {PARTS[plan.each]}; a row is {plan.row} "
        f"({columns}){counts}; answer by {by}"
    )


def select_rows(library: Library, plan: CollectionPlan, rows: pa.Table) -> tuple[pa.Table, pa.Table | None]:
    if plan.condition is not None:
        where = f"SELECT * FROM {FOUND} WHERE ({plan.condition})"
        counting = query(library, where, {FOUND: rows}).to_arrow_table()
        if counting.column_names != rows.column_names:
            raise QueryError(f"got the condition {plan.condition!r}; give one expression over the fields")
        rows = counting
    if plan.select is None:
        return rows, None
    return rows, query(library, plan.select, {FOUND: rows}).to_arrow_table()
