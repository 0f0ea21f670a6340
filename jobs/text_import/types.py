"""The text of a video as a file has it, before it meets a library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

WINDOW_S = 10.0
"""Length of the segments of a video that is known by its transcript alone: that of ingest where there are no shots."""
PROBLEMS_TOLD = 3


@dataclass(frozen=True, slots=True)
class TextLine:
    """What is seen or said in `[start_s, end_s)`, counted from the video's beginning; `confidence` is 0 to 1."""

    start_s: float
    end_s: float
    text: str
    confidence: float | None = None
    speaker: str | None = None
    language: str | None = None


@dataclass(frozen=True, slots=True)
class VideoText:
    """All lines of one video in order of time. `problem` says what of its text was left out, if anything."""

    name: str
    """What its owner calls the video: its title, the stem of its file, or a library's id."""
    lines: tuple[TextLine, ...]
    duration_s: float | None = None
    """None where the text does not tell: then it ends with its last line."""
    window_s: float = WINDOW_S
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Unread:
    """A file, or a video of one, whose text cannot be had; `name` is None where it is nobody's."""

    where: str
    name: str | None
    error_class: str
    message: str


Read = VideoText | Unread


def video_text(where: str, name: str, lines: Sequence[TextLine], problems: Sequence[str]) -> Read:
    """The text of a video, or that there is none of it."""
    left_out = told(problems)
    if not lines:
        message = f"{where}: got no text of video {name}{left_out and f' ({left_out})'}; give it at least one line"
        return Unread(where, name, "EmptyText", message)
    ordered = sorted(lines, key=lambda line: (line.start_s, line.end_s))
    return VideoText(name, tuple(ordered), problem=f"{where}: {left_out}" if left_out else None)


def told(problems: Sequence[str]) -> str:
    """The first few problems in one line; empty if there are none."""
    if not problems:
        return ""
    more = f" and {len(problems) - PROBLEMS_TOLD:,} more" if len(problems) > PROBLEMS_TOLD else ""
    return f"{len(problems):,} left out: {'; '.join(problems[:PROBLEMS_TOLD])}{more}"


def plain(text: str) -> str:
    """A text in one line."""
    return " ".join(text.split())
