"""Tables and lines of a run of moments: for people at a terminal, as Markdown, and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from kinodex.index.durations import counted
from kinodex.index.terminal_text import visible
from kinodex.jobs.eval.item_choice import MOST_NAMED, some
from kinodex.jobs.eval.items import Problem
from kinodex.jobs.eval.moments.cases import Case, Cases
from kinodex.jobs.eval.moments.results import Result
from kinodex.jobs.eval.moments.standings import Standing, ground_standings, search_standings
from kinodex.jobs.eval.table_cells import NOTHING, Table, with_error

SEARCH_NOTES = (
    "R@k: share of searches with a right result among the first k; mAP and nDCG@10 as TREC has them. A moment is right "
    "if its middle lies in a true range that no better result lies in; a video if it has a true range. "
    "± is a standard error clustered by video, [] a 95 % interval"
)
GROUND_NOTES = (
    "The first range of each event that is there, whether or not it was said to be there, by its IoU with the true "
    "range that it fits best. misses: events that are there and were said to be nowhere; false alarms: the reverse. "
    "± is a standard error clustered by video, [] a 95 % interval"
)
NAMED_PROBLEMS = 3


def moment_facts(
    title: str, cases: Cases, problems: Sequence[Problem], file: str, results: Sequence[Result] = ()
) -> list[str]:
    """Return the lines about a run: its searches, those left out, missing videos and failures."""
    there = sum(not case.absent for case in cases.cases)
    nowhere = len(cases.cases) - there
    whole = sum(case.video_id is None for case in cases.cases)
    lines = [
        f"{title}: {len(cases.cases):,} searches, {there:,} of what is there and {nowhere:,} of what is nowhere; "
        f"{whole:,} of the whole library, {len(cases.cases) - whole:,} of one video"
    ]
    if problems:
        named = [f"{each.where}: {each.what}" for each in problems[:NAMED_PROBLEMS]]
        named += [f"and {len(problems) - NAMED_PROBLEMS:,} more"] if len(problems) > NAMED_PROBLEMS else []
        lines.append(f"{counted(len(problems), 'defect')} in the file of the benchmark: {'; '.join(named)}")
    lines += [f"left out: {count:,} ({reason})" for reason, count in cases.left_out.items()]
    lacking = [each for each in cases.missing if each.video not in cases.ambiguous]
    if lacking:
        names = some([each.video for each in lacking])
        lines.append(f"not in the library: {counted(len(lacking), 'video')}, whose moments count as missed: {names}")
    lines += [f"not searched: {each.why}" for each in cases.missing if each.video in cases.ambiguous][:MOST_NAMED]
    failed: dict[str, list[Result]] = {}
    for each in results:
        if each.error:
            failed.setdefault(each.system, []).append(each)
    lines += [
        f"{name} failed in {len(errors):,} searches, which count as wrong (--retry-errors searches again); the first, "
        f"{visible(errors[0].case_id)}: {visible(errors[0].error)}"
        for name, errors in failed.items()
    ]
    return [*lines, f"results in {file}"] if file else lines


def standing_table(title: str, standings: Sequence[Standing], prefix: str = "") -> Table:
    """Return a row for each contender, a column for each figure whose name begins with a prefix, which is left out.

    Searches that failed have a column if there are any.
    """
    known = dict.fromkeys(name for each in standings for name in (*each.figures, *each.plain))
    names = [name for name in known if name.startswith(prefix)]
    failed = any(each.errors for each in standings)
    rows = []
    for each in standings:
        counts = [str(each.searches), *([str(each.errors)] if failed else [])]
        rows.append((each.system, *counts, *(_moment_cell(each, name) for name in names)))
    heads = "system", "searches", *(["failed"] if failed else []), *(name.removeprefix(prefix) for name in names)
    return Table(title, heads, tuple(rows))


def search_tables(standings: Sequence[Standing], categories: Mapping[str, Sequence[Standing]]) -> list[Table]:
    """Tables of moments, of videos where whole libraries were searched, and of moments by category."""
    tables = [standing_table("Moments", standings, "moment ")]
    if any(name.startswith("video ") for each in standings for name in each.figures):
        tables.append(standing_table("Videos", standings, "video "))
    return tables + [standing_table(f"Moments: {name}", each, "moment ") for name, each in categories.items() if each]


def ground_tables(standings: Sequence[Standing], categories: Mapping[str, Sequence[Standing]]) -> list[Table]:
    """Tables of all events and of those of each category."""
    tables = [standing_table("Ranges", standings)]
    return tables + [standing_table(f"Ranges: {name}", each) for name, each in categories.items() if each]


def as_json(
    standings: Sequence[Standing],
    categories: Mapping[str, Sequence[Standing]],
    cases: Cases,
    problems: Sequence[Problem] = (),
) -> dict[str, Any]:
    """Return all figures as JSON values, with what was left out, what is missing, and the defects of the file."""
    return {
        "searches": len(cases.cases),
        "left_out": dict(cases.left_out),
        "missing_videos": [asdict(each) for each in cases.missing],
        "defects": [asdict(each) for each in problems],
        "systems": [asdict(each) for each in standings],
        "categories": {name: [asdict(each) for each in part] for name, part in categories.items()},
    }


class Scores(NamedTuple):
    """A kind of run: how it is scored, and the tables and the note of its figures."""

    standings: Callable[[Sequence[Case], Sequence[Result]], list[Standing]]
    tables: Callable[[Sequence[Standing], Mapping[str, Sequence[Standing]]], list[Table]]
    notes: str


SEARCH = Scores(search_standings, search_tables, SEARCH_NOTES)
GROUND = Scores(ground_standings, ground_tables, GROUND_NOTES)


def _moment_cell(standing: Standing, name: str) -> str:
    if name in standing.figures:
        return with_error(standing.figures[name])
    value = standing.plain.get(name)
    return NOTHING if value is None else f"{value:.3f}"
