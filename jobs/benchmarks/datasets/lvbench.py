"""LVBench: films of half an hour to two hours and more (Wang et al. 2024, arXiv 2406.08035).

Published as `video_info.meta.jsonl`, a line a video with its questions in `qa`. The options stand in the question's own
text. A question counts in every type that its list names, and once overall.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field

from jobs.benchmarks.samples import (
    AS_PUBLISHED,
    AddNote,
    BadRow,
    ParsedRows,
    Raw,
    Sample,
    Target,
    json_lines,
    lettered_answer,
    make_question,
    parse_samples,
)

_OPTION = re.compile(r"^\s*\(([A-Z])\)", re.MULTILINE)
_CLOCK = r"((?:\d{1,5}:)?\d{1,5}:\d{1,5})"
_RANGE = re.compile(rf"\s*{_CLOCK}\s*-\s*{_CLOCK}\s*")


class _VideoInfo(BaseModel):
    duration_minutes: Annotated[float, Field(gt=0)]


class _Question(BaseModel):
    model_config = AS_PUBLISHED

    uid: str
    question: str
    answer: Annotated[str, Field(pattern="^[A-Z]$")]
    question_type: Annotated[tuple[str, ...], Field(min_length=1)]
    time_reference: str


class _Row(BaseModel):
    key: str
    type: str
    video_info: _VideoInfo
    qa: _Question


def read_lvbench(path: Path) -> ParsedRows:
    """Read questions, grouped by type of question and of video; the time reference of a question is its evidence."""
    return parse_samples(_questions(path), _Row, _item)


def _questions(path: Path) -> Iterator[Raw]:
    """Read each question with the fields of its video."""
    for where, video in json_lines(path):
        questions = video.get("qa") if isinstance(video, dict) else None
        if not isinstance(questions, list):
            yield where, video
            continue
        for number, asked in enumerate(questions, start=1):
            yield f"{where}, question {number}", {**video, "qa": asked}


def _item(row: _Row, note: AddNote) -> Sample:
    text, options = _split(row.qa.question)
    answer = lettered_answer("answer", row.qa.answer, options)
    return Sample(
        row.qa.uid,
        row.key,
        make_question(text, options, note),
        Target(answer, evidence=_evidence(row.qa.time_reference, note)),
        {"question_type": tuple(dict.fromkeys(row.qa.question_type)), "video_type": (row.type,)},
        row.video_info.duration_minutes * 60,
    )


def _split(text: str) -> tuple[str, list[str]]:
    """Split a text into question and options, "What year? (A) 1636 (B) 1366" with each option on its own line."""
    asked, *parts = _OPTION.split(text)
    letters = "".join(parts[::2])
    if len(letters) < 2 or letters != string.ascii_uppercase[: len(letters)]:
        raise BadRow(f"question: got options {letters or 'none'} in its text; each is on a line, from (A) on")
    return asked, parts[1::2]


def _evidence(time_reference: str, note: AddNote) -> tuple[tuple[float, float], ...]:
    """Parse a range of whole seconds, of which the last may be the first."""
    match = _RANGE.fullmatch(time_reference)
    start_s, end_s = map(_seconds, match.groups()) if match else (0.0, -1.0)
    if end_s < start_s:
        note(f"time_reference: got {time_reference!r}, not MM:SS-MM:SS; the question is kept without evidence")
        return ()
    return ((start_s, max(end_s, start_s + 1)),)


def _seconds(clock: str) -> float:
    seconds = 0.0
    for part in clock.split(":"):
        seconds = seconds * 60 + int(part)
    return seconds
