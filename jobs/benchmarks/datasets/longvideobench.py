"""LongVideoBench: films of seconds to an hour with subtitles (Wu et al. 2024, arXiv 2407.15754).

Published as `lvb_val.json`, and as parquet without levels and with candidates in `option0` to `option4`, "N/A" at the
end where there is none. `position` counts frames at a rate that the file does not tell, so no evidence is taken from
it.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

from pydantic import BaseModel, Field, model_validator

from jobs.benchmarks.samples import (
    AS_PUBLISHED,
    AddNote,
    BadRow,
    ParsedRows,
    Sample,
    Target,
    json_rows,
    make_question,
    parquet_rows,
    parse_samples,
)

_OPTION = re.compile(r"option(0|[1-9]\d?)")


class _Row(BaseModel):
    model_config = AS_PUBLISHED

    id: str
    video_path: str
    question: str
    candidates: Annotated[tuple[str, ...], Field(min_length=2)]
    correct_choice: int | None = None
    topic_category: str
    question_category: str
    level: str | None = None
    duration_group: str
    duration: Annotated[float, Field(gt=0)]

    @model_validator(mode="before")
    @classmethod
    def _candidates(cls, row: Any) -> Any:
        """Turn the parquet file's columns of options into the JSON file's list."""
        if not isinstance(row, dict) or "candidates" in row:
            return row
        numbers = sorted(int(match[1]) for match in map(_OPTION.fullmatch, row) if match)
        options = [row[f"option{number}"] for number in numbers]
        while options and options[-1] in (None, "N/A"):  # one before a real option is an option: the answer counts it
            options.pop()
        return {**row, "candidates": options}


def read_longvideobench(path: Path) -> ParsedRows:
    """Read questions, grouped by duration, category, level and topic. Rows of the test set have no answer."""
    rows = parquet_rows(path) if path.suffix == ".parquet" else json_rows(path)
    return parse_samples(rows, _Row, _item)


def _item(row: _Row, note: AddNote) -> Sample:
    truth = None if row.correct_choice == -1 else row.correct_choice
    if truth is not None and not 0 <= truth < len(row.candidates):
        raise BadRow(f"correct_choice: got {truth}; there are {len(row.candidates)} candidates, counted from 0")
    groups = {
        "duration_group": (row.duration_group,),
        "question_category": (row.question_category,),
        **({"level": (row.level,)} if row.level else {}),
        "topic": (row.topic_category,),
    }
    video = PurePosixPath(row.video_path).stem
    return Sample(row.id, video, make_question(row.question, row.candidates, note), Target(truth), groups, row.duration)
