"""EgoSchema: three-minute films of daily life, five options (Mangalam et al. 2023, arXiv 2308.09126).

Published as `questions.json` (5,031 rows, no answers) and `subset_answers.json` (`{q_uid: index}` of 500). LLoVi and
others hand out the 500 as one file, `subset_anno.json`: `{q_uid: row with "truth"}`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field

from jobs.benchmarks.samples import (
    AS_PUBLISHED,
    AddNote,
    BadRow,
    ParsedRows,
    Raw,
    Sample,
    Target,
    json_file,
    make_question,
    parse_samples,
)
from jobs.errors import UsageError

FILES = ("subset_anno.json", "questions.json")
ANSWERS = "subset_answers.json"
LENGTH_S = 180.0


class _Row(BaseModel):
    model_config = AS_PUBLISHED

    q_uid: str
    question: str
    option_0: Annotated[str, Field(alias="option 0")]
    option_1: Annotated[str, Field(alias="option 1")]
    option_2: Annotated[str, Field(alias="option 2")]
    option_3: Annotated[str, Field(alias="option 3")]
    option_4: Annotated[str, Field(alias="option 4")]
    truth: Annotated[int | None, Field(ge=0, le=4)] = None


def read_subset(path: Path) -> ParsedRows:
    """Read the 500 questions with published answers: `subset_anno.json`, or `questions.json` beside its answers."""
    answers = _answers(path)
    rows = [(where, raw) for where, raw in _rows(path, answers) if not answers or _may_be_in(answers, raw.get("q_uid"))]

    def scored(row: _Row, note: AddNote) -> Sample:
        if row.truth is None:
            raise BadRow(f"no truth; give {ANSWERS} beside {path.name}, or ask for egoschema-full")
        return _item(row, note)

    return parse_samples(rows, _Row, scored)


def read_full(path: Path) -> ParsedRows:
    """Read all 5,031 questions: only the benchmark's server knows most of the answers."""
    return parse_samples(_rows(path, _answers(path)), _Row, _item)


def _item(row: _Row, note: AddNote) -> Sample:
    options = (row.option_0, row.option_1, row.option_2, row.option_3, row.option_4)
    return Sample(
        row.q_uid, row.q_uid, make_question(row.question, options, note), Target(row.truth), duration_s=LENGTH_S
    )


def _rows(path: Path, answers: Mapping[str, Any]) -> list[Raw]:
    published = json_file(path)
    rows = list(published.values()) if isinstance(published, dict) else published
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise UsageError(f"{path} is no list or object of questions; give {' or '.join(FILES)} as published")
    return [
        (f"row {number}", row if row.get("truth") is not None else {**row, "truth": answers.get(str(row.get("q_uid")))})
        for number, row in enumerate(rows, start=1)
    ]


def _may_be_in(answers: Mapping[str, Any], q_uid: object) -> bool:
    """True for an id with an answer, and for what is no id, which is noted as a defect of its row."""
    return not isinstance(q_uid, str | int) or str(q_uid) in answers


def _answers(path: Path) -> Mapping[str, Any]:
    beside = path.with_name(ANSWERS)
    answers = json_file(beside) if beside.is_file() else {}
    if not isinstance(answers, dict):
        raise UsageError(f"{beside} is no object of answers by question; give it as it is published")
    return answers
