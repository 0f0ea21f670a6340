"""Video-MME-v2: 800 films with a group of four questions each, eight options (Fu et al. 2026, arXiv 2604.05015).

Published as `test.parquet`, a row a question: `video_id`, `question_id`, `question`, `options` (one a line with its
letter, or a list), `answer`, `level` (1 to 3), `group_type`, `group_structure`, `second_head`, `third_head`. Its own
score is by group, not by question: `jobs.evaluation.score.question_groups`.
"""

from __future__ import annotations

import re
import string
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, Field, field_validator

from jobs.benchmarks.samples import (
    AS_PUBLISHED,
    AddNote,
    ParsedRows,
    Sample,
    Target,
    lettered_answer,
    make_question,
    parquet_rows,
    parse_samples,
)

STRUCTURES = ("[1,2,3,4]", "[1,[2,3],4]", "[[1,2],3,4]")
"""The orders in which a chain of four questions may stand."""
_LETTER = re.compile(r"^\s*([A-Z])[.)]\s*", re.MULTILINE)


class _Row(BaseModel):
    model_config = AS_PUBLISHED

    video_id: Annotated[str, Field(min_length=1)]
    question_id: str
    question: str
    options: Annotated[tuple[str, ...], Field(min_length=2)]
    answer: Annotated[str, Field(pattern="^[A-Z]$")]
    group_type: Literal["relevance", "logic"]
    group_structure: str | None = None
    level: str | None = None
    second_head: str | None = None
    third_head: str | None = None

    @field_validator("options", mode="before")
    @classmethod
    def _lines(cls, options: object) -> object:
        """Split a text of lettered lines, in which an option may go over several; a list stays one."""
        if isinstance(options, list | tuple) and options and all(_LETTER.match(str(each)) for each in options):
            return _split("\n".join(map(str, options)))
        return _split(options) if isinstance(options, str) else options


def read_video_mme_v2(path: Path) -> ParsedRows:
    """Read questions, grouped by level, type of their group, and both heads. A video's name is its number, as 001."""
    return parse_samples(parquet_rows(path), _Row, _item)


def _split(text: str) -> list[str]:
    before, *parts = _LETTER.split(text)
    letters = "".join(parts[::2])
    if before.strip() or letters != string.ascii_uppercase[: len(letters)]:
        raise ValueError(f"got {text[:60]!r}; each option is on a line and begins with its letter, from A. on")
    return parts[1::2]


def _item(row: _Row, note: AddNote) -> Sample:
    structure = (row.group_structure or "").replace(" ", "")
    if row.group_type == "logic" and structure not in STRUCTURES:
        note(f"group_structure: got {structure or 'none'}; its group is scored as {STRUCTURES[0]}")
    groups = {
        "level": row.level,
        "group_type": row.group_type,
        "group_structure": row.group_structure,
        "second_head": row.second_head,
        "third_head": row.third_head,
    }
    return Sample(
        row.question_id,
        row.video_id,
        make_question(row.question, row.options, note),
        Target(lettered_answer("answer", row.answer, row.options)),
        {name: (value,) for name, value in groups.items() if value and value != "None"},
    )
