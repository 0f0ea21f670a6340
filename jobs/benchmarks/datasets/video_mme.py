"""Video-MME: 900 films of seconds to an hour, four options (Fu et al. 2024, arXiv 2405.21075).

Published as a parquet file, a row a question. Whether subtitles are shown is a choice of the run.
"""

from __future__ import annotations

import re
import string
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from jobs.benchmarks.samples import (
    AS_PUBLISHED,
    AddNote,
    BadRow,
    ParsedRows,
    Sample,
    Target,
    lettered_answer,
    make_question,
    parquet_rows,
    parse_samples,
)

_LETTER = re.compile(r"\s*([A-Z])[.:)]\s*")


class _Row(BaseModel):
    model_config = AS_PUBLISHED

    duration: Literal["short", "medium", "long"]
    domain: str
    sub_category: str
    video: Annotated[str, Field(alias="videoID")]
    question_id: str
    task_type: str
    question: str
    options: Annotated[tuple[str, ...], Field(min_length=2)]
    answer: Annotated[str, Field(pattern="^[A-Z]$")]


def read_video_mme(path: Path) -> ParsedRows:
    """Read questions, grouped by duration, domain, sub-category and task. A video's name is its YouTube id."""
    return parse_samples(parquet_rows(path), _Row, _item)


def _item(row: _Row, note: AddNote) -> Sample:
    answer = lettered_answer("answer", row.answer, row.options)
    groups = {
        "duration": (row.duration,),
        "domain": (row.domain,),
        "sub_category": (row.sub_category,),
        "task_type": (row.task_type,),
    }
    asked = make_question(row.question, _bare(row.options), note)
    return Sample(row.question_id, row.video, asked, Target(answer), groups)


def _bare(options: tuple[str, ...]) -> list[str]:
    """Strip the letters "A. " that the file puts before options."""
    letters = [match and match[1] for match in map(_LETTER.match, options)]
    if letters != list(string.ascii_uppercase[: len(options)]):
        raise BadRow(f"options: got {' | '.join(options)!r:.80}; each begins with its letter, from A. on")
    return [_LETTER.sub("", option, count=1) for option in options]
