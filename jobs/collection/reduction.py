"""The answer of a question: rows that count, by SQL or by a model."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from kinodex.agent.evidence import Evidence
from kinodex.agent.limits.ledger import Ledger
from kinodex.agent.models.roles import Role
from kinodex.agent.protocol.notes import Note
from kinodex.agent.protocol.question import Question
from kinodex.agent.requests.collection import FOUND, AnswerFromRows, CollectionPlan
from kinodex.index.durations import counted
from kinodex.index.errors import QueryError
from kinodex.index.library import Library
from kinodex.index.rows import VideoRow
from kinodex.index.sql import query
from kinodex.jobs.add.stages import Extracts
from kinodex.jobs.collection.answer import CollectionAnswer, FilmFound, NotLooked
from kinodex.jobs.collection.asker import Asker, role_of
from kinodex.jobs.collection.plan import WHICH, select_rows

ROWS_READ = 300
"""Rows that a model is given at most to answer from."""
SHOWN = 20
"""Rows of a result that the answer has in words."""


def reduce_rows(
    asker: Asker,
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
    """Return the rows that count and the result of the plan's SELECT, None where a model answers; and what went wrong.

    A SELECT that the values of real rows stop (a division by 0) is one that counts by film instead.
    """
    try:
        return "", *select_rows(library, plan, rows)
    except QueryError as error:
        result = query(library, WHICH, {FOUND: rows}).to_arrow_table()
        return f"the plan's SQL could not be run on the rows ({error}), which are counted by film instead", rows, result


def _films(counting: pa.Table, titles: Mapping[str, str]) -> tuple[FilmFound, ...]:
    """Return the films with rows that count, those with the most first."""
    times: Counter[str] = Counter(counting["video_id"].to_pylist())
    moments: dict[str, dict[Evidence, None]] = {id_: {} for id_ in times}
    for row in counting.to_pylist():
        start_s, end_s = row["evidence_start_s"], row["evidence_end_s"]
        start_s, end_s = (row["start_s"], row["end_s"]) if start_s is None else (start_s, end_s)
        moments[row["video_id"]][Evidence(row["video_id"], start_s, end_s)] = None
    found = [FilmFound(id_, titles[id_], count, tuple(moments[id_])) for id_, count in times.items()]
    return tuple(sorted(found, key=lambda each: (-each.times, each.title)))


def _said(
    asker: Asker,
    plan: CollectionPlan,
    counting: pa.Table,
    looked_at: int,
    roles: Mapping[str, Role],
) -> tuple[str | None, pa.Table]:
    """Return the answer of a model that reads the rows, None if it gave none that can be used, and the rows that it
    cites.
    """
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
    reply = asker.ask(asked, role_of(roles, AnswerFromRows.role))
    more = f" (by the first {ROWS_READ} of {len(notes):,} rows)" if len(notes) > ROWS_READ else ""
    if reply is None:
        return None, counting
    cited = sorted({number - 1 for number in reply.evidence})
    return f"{reply.said.strip()}{more}", counting.take(pa.array(cited, pa.int64())) if cited else counting


def in_words(result: pa.Table) -> str:
    """Return the rows of a result in words, of many the first."""
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
    """Return a value of SQL; sums of whole numbers, which are wider there, as Python has them."""
    return (int(value) if value == int(value) else float(value)) if isinstance(value, Decimal) else value


def _plain(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def not_looked_at(
    asker: Asker,
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


def _ledger(asker: Asker) -> Ledger:
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
