"""MINERVA: questions of several steps about films of two minutes to an hour and a half (Nagrani et al. 2025,
arXiv 2505.00681).

Published as a JSON array, `minerva.json`, linked from google-deepmind/neptune. Each row has a reasoning trace written
by hand; it holds the answer, so nothing of it goes into a sample.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

from pydantic import AliasChoices, BaseModel, Field

from jobs.benchmarks.samples import (
    AS_PUBLISHED,
    AddNote,
    BadRow,
    ParsedRows,
    Sample,
    Target,
    json_rows,
    make_question,
    parse_samples,
)

_YOUTUBE = re.compile(r"(?:[?&]v=|youtu\.be/|/shorts/|/embed/)([\w-]+)")


class _Row(BaseModel):
    model_config = AS_PUBLISHED

    key: str
    video_id: Annotated[str, Field(min_length=1)]
    question: str
    answer: str | None = None
    answer_choice_0: str
    answer_choice_1: str
    answer_choice_2: str
    answer_choice_3: str
    answer_choice_4: str
    answer_id: Annotated[int, Field(ge=0, le=4)]
    question_type: Annotated[str, Field(validation_alias=AliasChoices("question_type", "question type"))] = ""
    split: str = ""
    category: str = ""


def read_minerva(path: Path) -> ParsedRows:
    """Read questions, grouped by each skill that they need, domain and category. A video's name is its YouTube id."""
    return parse_samples(json_rows(path), _Row, _item)


def _item(row: _Row, note: AddNote) -> Sample:
    options = (row.answer_choice_0, row.answer_choice_1, row.answer_choice_2, row.answer_choice_3, row.answer_choice_4)
    if not all(option.strip() for option in options):
        raise BadRow("answer_choice: got one without words; there are five")
    if row.answer is not None and row.answer.strip() != options[row.answer_id].strip():
        note(f"answer: got {row.answer[:60]!r}, not the text of choice {row.answer_id}; the question is kept with that")
    skills = tuple(filter(None, map(str.strip, row.question_type.split(","))))
    groups = {"skill": skills, "split": (row.split,), "category": (row.category,)}
    address = _YOUTUBE.search(row.video_id)
    return Sample(
        row.key,
        address[1] if address else row.video_id,
        make_question(row.question, options, note),
        Target(row.answer_id),
        {name: values for name, values in groups.items() if all(values) and values},
    )
