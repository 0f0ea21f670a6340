"""JSON lines in kinodex's own form: `{"video", "start_s", "end_s", "text"}` and optional fields, in any order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from kinodex.jobs.errors import UnreadableText
from kinodex.jobs.json_files import first_defect
from kinodex.jobs.text_import.video_text import ReadFailure, ReadResult, TextLine, first_problems, one_line, video_text

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class _Row(BaseModel):
    """One line of text; times are in seconds from the video's beginning."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False, coerce_numbers_to_str=True)

    video: Text
    start_s: float = Field(ge=0)
    end_s: float
    text: Text
    confidence: float | None = Field(default=None, ge=0, le=1)
    speaker: str | None = None
    language: str | None = None

    @model_validator(mode="after")
    def _lasts(self) -> _Row:
        if not self.start_s < self.end_s:
            raise ValueError(f"ends at {self.end_s} s, not after its start at {self.start_s} s")
        return self


def is_rows(name: str, data: bytes) -> bool:
    """Check that a file is in this form: some files named .jsonl hold one JSON document of another form instead."""
    first, _, rest = data.lstrip().partition(b"\n")
    return name.lower().endswith(".jsonl") and (b'"start_s"' in first or (first.startswith(b"{") and b"\n{" in rest))


def read_rows(name: str, data: bytes) -> Iterator[ReadResult]:
    """Read the text of every video in a file, in the order of first rows; bad rows become one failure."""
    lines: dict[str, list[TextLine]] = defaultdict(list)
    problems: list[str] = []
    for number, row in enumerate(data.splitlines(), start=1):
        if not row.strip():
            continue
        try:
            read = _Row.model_validate_json(row)
        except ValidationError as error:
            problems.append(f"row {number}: {first_defect(error)}")
            continue
        tags = read.confidence, read.speaker or None, read.language or None
        lines[read.video].append(TextLine(read.start_s, read.end_s, one_line(read.text), *tags))
    for video, each in lines.items():
        yield video_text(name, video, each, ())
    if problems:
        message = f"{name}: {first_problems(problems)}; correct these rows"
        yield ReadFailure(name, None, UnreadableText.__name__, message)
