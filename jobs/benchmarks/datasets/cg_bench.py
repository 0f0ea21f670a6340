"""CG-Bench: questions about long films with the clues that answer them (Chen et al. 2024, arXiv 2412.12075).

Published as JSON, `cgbench.json` and, with 3,000 questions, `cgbench_mini.json`. `clue_intervals`, in seconds, are the
evidence. Its own scores of an answer's clues are mIoU and recall: `kinodex eval ground` with the same file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field

from jobs.benchmarks.samples import (
    AS_PUBLISHED,
    AddNote,
    ParsedRows,
    Sample,
    Target,
    json_rows,
    lettered_answer,
    make_question,
    parse_samples,
)


class CluedRow(BaseModel):
    """A row without its options and answer."""

    model_config = AS_PUBLISHED

    qid: str
    video_uid: Annotated[str, Field(min_length=1)]
    question: Annotated[str, Field(min_length=1)]
    clue_intervals: tuple[tuple[float, float], ...] = ()
    domain: str | None = None
    sub_category: str | None = None
    duration: Annotated[float, Field(gt=0)] | None = None


class _Row(CluedRow):
    choices: Annotated[tuple[str, ...], Field(min_length=2)]
    right_answer: Annotated[str, Field(pattern="^[A-Z]$")]


def read_cg_bench(path: Path) -> ParsedRows:
    """Read questions, grouped by domain and sub-category. A video's name is its `video_uid`."""
    return parse_samples(json_rows(path), _Row, _item)


def _item(row: _Row, note: AddNote) -> Sample:
    answer = lettered_answer("right_answer", row.right_answer, row.choices, "choices")
    clues = tuple(clue for clue in row.clue_intervals if 0 <= clue[0] < clue[1])
    if len(clues) < len(row.clue_intervals):
        note("clue_intervals: got one that ends where it begins or before; the question is kept without it")
    groups = {"domain": row.domain, "sub_category": row.sub_category}
    return Sample(
        row.qid,
        row.video_uid,
        make_question(row.question, row.choices, note),
        Target(answer, evidence=clues),
        {name: (value,) for name, value in groups.items() if value},
        row.duration,
    )
