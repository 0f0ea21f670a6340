"""Text of a video: its lines, and the reasons why some were left out or none can be read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

WINDOW_S = 10.0
"""Length of the segments of a video that has only a transcript; as in an ingest without shots."""
PROBLEMS_SHOWN = 3
LONGEST_S = 1e7
"""Greatest time of a line, 115 days: a video without frames is divided into windows up to its last line."""


@dataclass(frozen=True, slots=True)
class TextLine:
    """Caption or speech in `[start_s, end_s)`, in the time that a player shows; `confidence` is 0 to 1."""

    start_s: float
    end_s: float
    text: str
    confidence: float | None = None
    speaker: str | None = None
    language: str | None = None


@dataclass(frozen=True, slots=True)
class VideoText:
    """All lines of one video in order of time. `problem` says which of its text was left out, if any."""

    name: str
    """Name of the video: its title, the stem of its file, or a library's id."""
    lines: tuple[TextLine, ...]
    duration_s: float | None = None
    """None if the text does not hold it: the video ends with its last line."""
    window_s: float = WINDOW_S
    problem: str | None = None
    whole_name: str = ""
    """The name with what was read as a language: it is the video's if the library has one of that name."""
    clips: tuple[VideoText, ...] = ()
    """Of an episode: its clips, `window_s` seconds long each, with names and times of their own."""


@dataclass(frozen=True, slots=True)
class ReadFailure:
    """File, or video of one, whose text cannot be read; `name` is None if no video is known."""

    where: str
    name: str | None
    error_class: str
    message: str


ReadResult = VideoText | ReadFailure


def video_text(where: str, name: str, lines: Sequence[TextLine], problems: Sequence[str]) -> ReadResult:
    """Make the text of a video, or a failure if it has no line."""
    late = [line for line in lines if not line.start_s <= LONGEST_S or line.end_s > LONGEST_S]
    lines = [line for line in lines if line not in late]
    problems = [*problems, *(f"{line.start_s:g} s to {line.end_s:g} s, later than any video" for line in late)]
    left_out = first_problems(problems)
    if not lines:
        message = f"{where}: got no text of video {name}{left_out and f' ({left_out})'}; give it at least one line"
        return ReadFailure(where, name, "EmptyText", message)
    ordered = sorted(lines, key=lambda line: (line.start_s, line.end_s))
    return VideoText(name, tuple(ordered), problem=f"{where}: {left_out}" if left_out else None)


def first_problems(problems: Sequence[str]) -> str:
    """Format the first few problems in one line; empty if there are none."""
    if not problems:
        return ""
    more = f" and {len(problems) - PROBLEMS_SHOWN:,} more" if len(problems) > PROBLEMS_SHOWN else ""
    return f"{len(problems):,} left out: {'; '.join(problems[:PROBLEMS_SHOWN])}{more}"


def one_line(text: str) -> str:
    return " ".join(text.split())
