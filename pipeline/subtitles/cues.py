"""Parse the text of a subtitle file into cues: SRT, WebVTT, ASS and SSA. Linear in its length."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

from kinodex.pipeline.subtitles.markup import ass_voices, split_voices, srt_voices

Report = Callable[[str], None]
"""Gets a sentence about what is left out."""


def ignore(problem: str) -> None:
    """Report nothing."""


CLOCK = r"-?\s{0,3}\d{1,4}(?:\s{0,3}:\s{0,3}\d{1,4}){1,3}(?:\s{0,3}[.,]\s{0,3}\d{1,9})?"
"""A time in any form that files have: with or without hours and fractions, with spaces, before 0."""
TIMING = re.compile(rf"\s*({CLOCK})\s*(?:-{{1,2}}\s?>|[–—→]>?)\s*({CLOCK})(?:\s.*)?")
ARROW = "-->"
MEANS_TIMES = re.compile(r"\s*-?\d{1,4}\s?:")
NO_CUE = re.compile(r"(?:NOTE|STYLE|REGION)(?:\s|$)")
"""How a block of WebVTT begins that is no cue."""
ASS_HEADINGS = frozenset({"[script info]", "[v4+ styles]", "[v4 styles]"})
ASS_COLUMNS = ("layer", "start", "end", "style", "name", "marginl", "marginr", "marginv", "effect", "text")


class Cue(NamedTuple):
    """Plain text that one voice says, or that is shown, in `[start_s, end_s)` of the file's own clock."""

    start_s: float
    end_s: float
    text: str
    speaker: str | None = None


def parse_cues(text: str, report: Report = ignore) -> Iterator[Cue]:
    """Yield the cues of a file in its order; its text tells the format. `report` is told which lines have no times.

    Raises ValueError if it is in no format, or no times in it can be read.
    """
    lines = text.lstrip("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if any(line.strip().lower() in ASS_HEADINGS for line in lines):
        return _checked(_ass_events(lines), ass_voices, report)
    if text.lstrip("\ufeff \r\n").startswith("WEBVTT"):
        return _checked(_vtt_events(lines), split_voices, report)
    return _checked(_srt_events(lines), srt_voices, report)


class _Event(NamedTuple):
    """The text that a file shows from a line on, as it is, and its two times; None where these cannot be read."""

    number: int
    times_s: tuple[float, float] | None
    text: str
    speaker: str | None = None


def _checked(
    events: Iterable[_Event], voices: Callable[[str], Iterable[tuple[str | None, str]]], report: Report
) -> Iterator[Cue]:
    """Yield the cues of events; those without times are told to `report`, after others with times."""
    problem, is_readable = "no line with two times", False
    for event in events:
        if event.times_s is None:
            problem = f"line {event.number} has no two times"
            report(problem)
            continue
        is_readable = True
        for speaker, words in voices(event.text):
            yield Cue(*event.times_s, words, speaker or event.speaker)
    if not is_readable:
        raise ValueError(problem)


def _srt_events(lines: Sequence[str]) -> Iterator[_Event]:
    """Yield the events of SRT: a line with two times begins one, whatever stands around it."""
    found = [number for number in range(len(lines)) if _is_timing(lines, number)]
    for number, until in zip_longest(found, found[1:]):
        body = lines[number + 1 : until]
        yield _Event(number + 1, _times_s(lines[number]), "\n".join(body if until is None else _without_number(body)))


def _without_number(body: Sequence[str]) -> Sequence[str]:
    """Take the number of the next cue off the end of a cue's lines; a number alone in the first line is its text."""
    last = len(body) - 1
    while last > 0 and not body[last].strip():
        last -= 1
    return body[:last] if last > 0 and re.fullmatch(r"\s*\d+\s*", body[last]) else body


def _vtt_events(lines: Sequence[str]) -> Iterator[_Event]:
    """Yield the events of WebVTT, without its notes, styles, regions and the names of cues.

    A cue ends at an empty line, or at the next times: a line that holds a space is an empty row of its text.
    """
    for first, block in _blocks(lines):
        if NO_CUE.match(block[0]):
            continue
        found = [at for at in range(len(block)) if _is_timing(block, at, at == 1)]
        for at, until in zip_longest(found, found[1:]):
            body = block[at + 1 : until]
            text = "\n".join(body if until is None else _without_number(body))
            yield _Event(first + at, _times_s(block[at]), text)


def _blocks(lines: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """Split lines at empty ones; yields the number of the first line of each block, and the block."""
    block: list[str] = []
    for number, line in enumerate([*lines, ""], 1):
        if line:
            block.append(line)
        elif block:
            yield number - len(block), block
            block = []


def _is_timing(lines: Sequence[str], at: int, is_named: bool = False) -> bool:
    """Return True for a line with times, and for one with an arrow where times belong.

    They belong first, or after a number or a name.
    """
    line, before = lines[at], lines[at - 1].strip() if at else ""
    if TIMING.fullmatch(line):
        return True
    return ARROW in line and (is_named or not before or before.isdigit() or MEANS_TIMES.match(line) is not None)


def _times_s(line: str) -> tuple[float, float] | None:
    """Read the two times of a line; None if it has none."""
    timing = TIMING.fullmatch(line)
    start_s, end_s = map(_time_s, timing.groups()) if timing else (None, None)
    return None if start_s is None or end_s is None else (start_s, end_s)


def _ass_events(lines: Sequence[str]) -> Iterator[_Event]:
    """Yield the events of ASS or SSA that are text: no comments."""
    columns: Sequence[str] = ASS_COLUMNS
    for number, line in enumerate(lines, 1):
        kind, _, rest = line.strip().partition(":")
        if kind == "Format" and "start" in (names := [name.strip().lower() for name in rest.split(",")]):
            columns = names if {"end", "text"} <= set(names) and names[-1] == "text" else ASS_COLUMNS
        elif kind == "Dialogue":
            fields = dict(zip(columns, rest.strip().split(",", len(columns) - 1), strict=False))
            times_s = _times_s(f"{fields.get('start', '')} {ARROW} {fields.get('end', '')}")
            yield _Event(number, times_s, fields.get("text", ""), fields.get("name", "").strip() or None)


def _time_s(text: str) -> float | None:
    """Read a time that `CLOCK` matches, one before 0 as 0; None if it counts frames, or has too many parts."""
    whole, point, fraction = re.sub(r"\s", "", text).replace(",", ".").partition(".")
    parts = whole.lstrip("-").split(":")
    if not point and len(parts) > 2 and len(parts[-1]) == 3:
        *parts, fraction = parts  # 00:00:01:500
    if len(parts) > 3:
        return None
    whole_s = sum(int(part) * 60**power for power, part in enumerate(reversed(parts)))
    return 0.0 if whole.startswith("-") else (whole_s * 1000 + int(fraction.ljust(3, "0")[:3])) / 1000
