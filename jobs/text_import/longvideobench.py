"""The subtitles of LongVideoBench (arXiv 2407.15754): a JSON list a video, in one of two schemas.

    [{"start": "00:00:01.040", "end": "00:00:03.500", "line": "So"}]
    [{"timestamp": [1.04, 3.5], "text": "So"}]

Where `end` is no number the line lasts until the next. A video may be cut from a longer one, whose subtitles these
are: `starting_timestamp_for_subtitles` in the annotation file says where it begins, and `duration` how long it is.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from kinodex.jobs.errors import UnreadableText, UsageError
from kinodex.jobs.text_import.files import stem
from kinodex.jobs.text_import.video_text import (
    LONGEST_S,
    ReadFailure,
    ReadResult,
    TextLine,
    VideoText,
    one_line,
    video_text,
)

CLOCK = re.compile(r"(?:(?P<h>\d{1,5}):)?(?P<m>\d{1,5}):(?P<s>\d{1,5}(?:[.,]\d{1,9})?)")
LANGUAGE = re.compile(r"_[a-z]{2}$")
LAST_LINE_S = 5.0
"""Length of a last line without an end."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Position of a video in the longer one that its subtitles belong to."""

    video: str
    start_s: float
    duration_s: float


class _Annotation(BaseModel):
    model_config = ConfigDict(allow_inf_nan=False)

    video_id: str
    subtitle_path: str
    starting_timestamp_for_subtitles: Annotated[float, Field(ge=0)]
    duration: Annotated[float, Field(gt=0)]


def read_cuts(annotations: Path) -> dict[str, tuple[Cut, ...]]:
    """Read the cuts of each subtitle file from LongVideoBench's annotations, one a video; raises UsageError."""
    try:
        rows = TypeAdapter(list[_Annotation]).validate_json(annotations.read_bytes())
    except (OSError, ValidationError) as error:
        problem = " ".join(str(error).split())[:200]
        raise UsageError(f"got --cuts {annotations}: {problem}; give LongVideoBench's lvb_val.json") from error
    cuts: dict[str, dict[Cut, None]] = defaultdict(dict)
    for row in rows:
        cut = Cut(row.video_id, row.starting_timestamp_for_subtitles, row.duration)
        cuts[PurePosixPath(row.subtitle_path).name][cut] = None
    return {name: tuple(found) for name, found in cuts.items()}


def read_lines(name: str, rows: Sequence[Any], cuts: Mapping[str, Sequence[Cut]]) -> Iterator[ReadResult]:
    """Read the lines of each video whose subtitles a file holds, without those outside its cut, if `cuts` are known."""
    known = cuts.get(PurePosixPath(name).name, ())
    if cuts and not known:
        message = f"{name}: --cuts does not say of which part of a video it is; give annotations that do, or no --cuts"
        yield ReadFailure(name, None, UnreadableText.__name__, message)
    for cut in known if cuts else (None,):
        yield _lines_of(name, rows, cut)


def _lines_of(name: str, rows: Sequence[Any], cut: Cut | None) -> ReadResult:
    video = cut.video if cut else LANGUAGE.sub("", stem(name))
    lines: list[TextLine] = []
    problems: list[str] = []
    for number, row in enumerate(rows, start=1):
        line = _longvideobench_line(row) if isinstance(row, Mapping) else None
        if line is None:
            problems.append(f"row {number}: got {str(row)[:80]}, which is no line with a start and a text")
        else:
            lines.append(line)
    found = video_text(name, video, lines, problems)
    if not isinstance(found, VideoText):
        return found
    ended = replace(found, lines=_ended(found.lines))
    return _within(ended, cut) if cut else ended


def _longvideobench_line(row: Mapping[str, Any]) -> TextLine | None:
    """Parse a row of either schema; its end is NaN if it is no number."""
    times = row.get("timestamp", [row.get("start"), row.get("end")])
    start, end = times if isinstance(times, list) and len(times) == 2 else (None, None)
    text, start_s = row.get("text", row.get("line")), _seconds(start)
    if not isinstance(text, str) or not text.strip() or not start_s >= 0:
        return None
    return TextLine(start_s, _seconds(end), one_line(text))


def _seconds(value: Any) -> float:
    """Parse a time given as a number or as H:M:S; NaN if it is neither."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(min(value, 2 * LONGEST_S))  # JSON has whole numbers that are no float; `video_text` drops them
    clock = CLOCK.fullmatch(value.strip()) if isinstance(value, str) else None
    if clock is None:
        return math.nan
    return int(clock["h"] or 0) * 3600 + int(clock["m"]) * 60 + float(clock["s"].replace(",", "."))


def _ended(lines: Sequence[TextLine]) -> tuple[TextLine, ...]:
    """Give every line an end, not before its start."""
    last = TextLine(lines[-1].start_s + LAST_LINE_S, math.nan, "")
    return tuple(
        line if line.end_s >= line.start_s else replace(line, end_s=following.start_s)
        for line, following in pairwise([*lines, last])
    )


def _within(text: VideoText, cut: Cut) -> VideoText:
    """Shift the lines that overlap the cut to its own time."""
    moved = [
        replace(line, start_s=max(line.start_s - cut.start_s, 0.0), end_s=min(line.end_s - cut.start_s, cut.duration_s))
        for line in text.lines
        if line.end_s > cut.start_s and line.start_s < cut.start_s + cut.duration_s
    ]
    return replace(text, lines=tuple(moved), duration_s=cut.duration_s)
