"""Questions of one's own: a line of JSON each, about videos of one's own library.

`own` takes questions with options, scored by the option that is chosen; `own-open` those without, whose answers a
model judges. docs/evaluation.md shows the lines.
"""

from __future__ import annotations

import string
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field, StringConstraints

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

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Range = tuple[float, float]


# A misspelt field of one's own file would silently leave out an answer or an evidence range.
class _Row(BaseModel, extra="forbid"):
    model_config = AS_PUBLISHED

    id: Text
    video: Text
    question: str
    answer: Annotated[str, StringConstraints(strip_whitespace=True)] | None = None
    evidence: tuple[Range, ...] = ()
    category: Text | tuple[Text, ...] = ()


class _Chosen(_Row):
    options: tuple[str, ...] = Field(min_length=2)


def read_multiple_choice(path: Path) -> ParsedRows:
    """Read questions with options; `answer` is the right option's own words or its letter."""
    return parse_samples(json_lines(path), _Chosen, _chosen)


def read_open_ended(path: Path) -> ParsedRows:
    """Read questions without options; `answer` is the text with which a judge compares replies."""
    return parse_samples(json_lines(path), _Row, lambda row, note: _item(row, (), Target(text=row.answer), note))


def _chosen(row: _Chosen, note: AddNote) -> Sample:
    return _item(row, row.options, Target(None if row.answer is None else _option(row.options, row.answer)), note)


def _item(row: _Row, options: tuple[str, ...], truth: Target, note: AddNote) -> Sample:
    for start_s, end_s in row.evidence:
        if not 0 <= start_s < end_s:
            raise BadRow(f"evidence: got {start_s} to {end_s}; it is a start from 0 on and a later end in seconds")
    categories = (row.category,) if isinstance(row.category, str) else row.category
    asked = make_question(row.question, options, note)
    true = Target(truth.option, truth.text, row.evidence)
    return Sample(row.id, row.video, asked, true, {"category": categories} if categories else {})


def _option(options: tuple[str, ...], answer: str) -> int:
    """Find the option with these words, in the same case first, else with this letter: an option may be a letter."""
    bare = [option.strip() for option in options]
    letters = list(string.ascii_lowercase[: len(options)])
    for wanted, known in (
        (answer.strip(), bare),
        (answer.strip().casefold(), [option.casefold() for option in bare]),
        (answer.strip().casefold(), letters),
    ):
        if known.count(wanted) > 1:
            raise BadRow(f"answer: got {answer!r}, which are the words of {known.count(wanted)} options; give a letter")
        if wanted in known:
            return known.index(wanted)
    raise BadRow(f"answer: got {answer!r}; it is one of the options, or a letter up to {letters[-1].upper()}")
