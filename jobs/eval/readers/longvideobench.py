"""LongVideoBench: films of seconds to an hour with subtitles (Wu et al. 2024, arXiv 2407.15754).

Published as `lvb_val.json`, and as parquet without levels and with candidates in `option0` to `option4`, "N/A" at the
end where there is none. `position` counts frames at a rate that the file does not tell: it gives no evidence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import model_validator

from kinodex.jobs.eval.items import BadRow, Item, Target
from kinodex.jobs.eval.readers.fields import LengthS, Options
from kinodex.jobs.eval.row_files import json_rows, parquet_rows
from kinodex.jobs.eval.rows import AddNote, Raw, Row, make_groups, make_question

_OPTION_COLUMN = re.compile(r"option(0|[1-9]\d?)")


class LongVideoBenchRow(Row):
    """In groups by duration, category, level and topic. Rows of the test set have no answer."""

    id: str
    video_path: str
    question: str
    candidates: Options
    correct_choice: int | None = None
    topic_category: str
    question_category: str
    level: str | None = None
    duration_group: str
    duration: LengthS

    @model_validator(mode="before")
    @classmethod
    def _candidates(cls, row: Any) -> Any:
        """Turn the parquet file's columns of options into the JSON file's list."""
        if not isinstance(row, dict) or "candidates" in row:
            return row
        numbers = sorted(int(match[1]) for match in map(_OPTION_COLUMN.fullmatch, row) if match)
        options = [row[f"option{number}"] for number in numbers]
        while options and options[-1] in (None, "N/A"):  # one before a real option is an option: the answer counts it
            options.pop()
        return {**row, "candidates": options}

    def item(self, note: AddNote) -> Item:
        truth = None if self.correct_choice == -1 else self.correct_choice
        if truth is not None and not 0 <= truth < len(self.candidates):
            raise BadRow(f"correct_choice: got {truth}; there are {len(self.candidates)} candidates, counted from 0")
        groups = {"duration_group": self.duration_group, "question_category": self.question_category}
        video, asked = PurePosixPath(self.video_path).stem, make_question(self.question, self.candidates, note)
        groups_of = make_groups(**groups, level=self.level, topic=self.topic_category)
        return Item(self.id, video, asked, Target(truth), groups_of, self.duration)


def longvideobench_rows(path: Path) -> Iterator[Raw]:
    """Read rows of either form."""
    return parquet_rows(path) if path.suffix == ".parquet" else json_rows(path)
