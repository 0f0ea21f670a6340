"""LVBench: films of half an hour to two hours and more (Wang et al. 2024, arXiv 2406.08035).

A line is a video with its questions in `qa`. The options stand in the question's own text. A question counts in every
type that its list names, and once overall.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field

from kinodex.index.times import parse_time
from kinodex.jobs.eval.items import BadRow, Item, Target
from kinodex.jobs.eval.readers.fields import LengthS, Letter, TimeRange
from kinodex.jobs.eval.row_files import json_lines
from kinodex.jobs.eval.rows import AddNote, Raw, Row, lettered_answer, make_question

_LVBENCH_OPTION = re.compile(r"^\s*\(([A-Z])\)", re.MULTILINE)
_CLOCK = r"((?:\d{1,5}:)?\d{1,5}:\d{1,5})"
_CLOCK_RANGE = re.compile(rf"\s*{_CLOCK}\s*-\s*{_CLOCK}\s*")


class _LVBenchVideo(BaseModel):
    duration_minutes: LengthS


class _LVBenchQuestion(Row):
    uid: str
    question: str
    answer: Letter
    question_type: Annotated[tuple[str, ...], Field(min_length=1)]
    time_reference: str


class LVBenchRow(BaseModel):
    """In groups by type of question and of video; the time reference of a question is its evidence."""

    key: str
    type: str
    video_info: _LVBenchVideo
    qa: _LVBenchQuestion

    def item(self, note: AddNote) -> Item:
        text, options = _split_lvbench(self.qa.question)
        answer = lettered_answer("answer", self.qa.answer, options)
        return Item(
            self.qa.uid,
            self.key,
            make_question(text, options, note),
            Target(answer, evidence=_clock_range(self.qa.time_reference, note)),
            {"question_type": tuple(dict.fromkeys(self.qa.question_type)), "video_type": (self.type,)},
            self.video_info.duration_minutes * 60,
        )


def lvbench_rows(path: Path) -> Iterator[Raw]:
    """Read each question with the fields of its video."""
    for where, video in json_lines(path):
        questions = video.get("qa") if isinstance(video, dict) else None
        if not isinstance(questions, list):
            yield where, video
            continue
        for number, asked in enumerate(questions, start=1):
            yield f"{where}, question {number}", {**video, "qa": asked}


def _split_lvbench(text: str) -> tuple[str, list[str]]:
    """Split a text into question and options, "What year? (A) 1636 (B) 1366" with each option on its own line."""
    asked, *parts = _LVBENCH_OPTION.split(text)
    letters = "".join(parts[::2])
    if len(letters) < 2 or letters != string.ascii_uppercase[: len(letters)]:
        raise BadRow(f"question: got options {letters or 'none'} in its text; each is on a line, from (A) on")
    return asked, parts[1::2]


def _clock_range(time_reference: str, note: AddNote) -> tuple[TimeRange, ...]:
    """Parse a range of whole seconds, of which the last may be the first."""
    match = _CLOCK_RANGE.fullmatch(time_reference)
    start_s, end_s = map(parse_time, match.groups()) if match else (0.0, -1.0)
    if end_s < start_s:
        note(f"time_reference: got {time_reference!r}, not MM:SS-MM:SS; the question is kept without evidence")
        return ()
    return ((start_s, max(end_s, start_s + 1)),)
