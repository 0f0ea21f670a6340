"""The sketch world: films that `kinodex sample` draws, with the `questions.jsonl` that it writes."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel

from jobs.benchmarks.samples import (
    AS_PUBLISHED,
    AddNote,
    BadRow,
    ParsedRows,
    Sample,
    Target,
    json_lines,
    make_question,
    parse_samples,
)


class _Row(BaseModel):
    model_config = AS_PUBLISHED

    question_id: str
    video: str
    kind: str
    question: str
    options: tuple[str, ...]
    answer: int
    evidence: tuple[float, float]
    ranges: tuple[tuple[float, float], ...] = ()
    needs: str | None = None


def read_synthetic(path: Path) -> ParsedRows:
    """Read questions, grouped by the kind of moment that they ask for, and those of a story by what they need."""
    return parse_samples(json_lines(path), _Row, _item)


def _item(row: _Row, note: AddNote) -> Sample:
    if not 0 <= row.answer < len(row.options):
        raise BadRow(f"answer: got {row.answer}; there are {len(row.options)} options, counted from 0")
    evidence = row.ranges or (row.evidence,)
    for start_s, end_s in evidence:
        if not 0 <= start_s < end_s:
            raise BadRow(f"evidence: got {start_s} to {end_s}; it is a start and a later end in seconds")
    asked = make_question(row.question, row.options, note)
    groups = {"kind": (row.kind,), **({"needs": (row.needs,)} if row.needs else {})}
    return Sample(row.question_id, row.video, asked, Target(row.answer, evidence=evidence), groups)
