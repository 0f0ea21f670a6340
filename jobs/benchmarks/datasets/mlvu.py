"""MLVU: nine tasks about films of three minutes to two hours (Zhou et al. 2024, arXiv 2406.04264).

Published as a JSON array for each task, `1_plotQA.json` to `9_summary.json`: seven with candidates, whose mean over the
tasks is its M-Avg, and two with free answers, which its judge scores (G-Avg). Rows of the test set have a
`question_id` and may have no answer; those of the dev set have no ids and are known by task and row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Annotated

from pydantic import BaseModel, Field

from jobs.benchmarks.samples import (
    AS_PUBLISHED,
    AddNote,
    BadRow,
    ParsedRows,
    Raw,
    Sample,
    Target,
    json_rows,
    make_question,
    parse_samples,
)

CHOICE_FILES = (
    "1_plotQA.json",
    "2_needle.json",
    "3_ego.json",
    "4_count.json",
    "5_order.json",
    "6_anomaly_reco.json",
    "7_topic_reasoning.json",
)
OPEN_FILES = ("8_sub_scene.json", "9_summary.json")
KINDS = {
    "topic_reasoning": "holistic",
    "anomaly_reco": "holistic",
    "summary": "holistic",
    "findNeedle": "single detail",
    "ego": "single detail",
    "plotQA": "single detail",
    "subPlot": "single detail",
    "order": "multi-detail",
    "count": "multi-detail",
}


class _Row(BaseModel):
    model_config = AS_PUBLISHED

    id: str
    video: Annotated[str, Field(min_length=1)]
    duration: Annotated[float, Field(gt=0)] | None = None
    question: str
    question_type: Annotated[str, Field(min_length=1)]
    answer: str | None = None


class _Choice(_Row):
    candidates: Annotated[tuple[str, ...], Field(min_length=2)]


def read_choices(path: Path) -> ParsedRows:
    """Read the questions with candidates: of `1_plotQA.json` and the tasks beside it, or of another file alone."""
    return parse_samples(_rows(path, CHOICE_FILES), _Choice, _choice)


def read_open_ended(path: Path) -> ParsedRows:
    """Read the questions with free answers: of `8_sub_scene.json` and `9_summary.json` beside it, or of one file."""
    return parse_samples(_rows(path, OPEN_FILES), _Row, lambda row, note: _item(row, (), Target(text=row.answer), note))


def _rows(path: Path, files: Iterable[str]) -> Iterator[Raw]:
    first, *others = files
    beside = (path.with_name(name) for name in others) if path.name == first else ()
    for file in (path, *filter(Path.is_file, beside)):
        for number, (where, raw) in enumerate(json_rows(file), start=1):
            place = where if file is path else f"{file.name}, {where}"
            yield place, {"id": _id(raw, file, number), **raw} if isinstance(raw, dict) else raw


def _id(raw: dict[str, object], file: Path, number: int) -> str:
    known = raw.get("question_id")
    return str(known) if isinstance(known, str | int) else f"{file.stem}-{number}"


def _choice(row: _Choice, note: AddNote) -> Sample:
    bare = [candidate.strip() for candidate in row.candidates]
    if row.answer is not None and row.answer.strip() not in bare:
        raise BadRow(f"answer: got {row.answer[:60]!r}, which is none of the {len(bare)} candidates")
    option = None if row.answer is None else bare.index(row.answer.strip())
    if option is not None and bare.count(bare[option]) > 1:
        note(f"answer: got {bare[option][:60]!r}, the text of several candidates; the first of them counts as right")
    return _item(row, row.candidates, Target(option), note)


def _item(row: _Row, options: tuple[str, ...], target: Target, note: AddNote) -> Sample:
    kind = KINDS.get(row.question_type)
    groups = {"task": (row.question_type,), **({"kind": (kind,)} if kind else {})}
    video = PurePosixPath(row.video).name
    return Sample(row.id, video, make_question(row.question, options, note), target, groups, row.duration)
