"""Parse the text of a subtitle file into cues: SRT, WebVTT, ASS and SSA. Linear in its length."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pipeline.cue_text import ass_text, split_voices, srt_voices

TIME = re.compile(r"(\d{1,4}):(\d{1,2}):(\d{1,2})[.,](\d{1,3})")
VTT_TIME = re.compile(r"(?:(\d{1,4}):)?(\d{2}):(\d{2})[.,](\d{2,3})")
ASS_HEADINGS = frozenset({"[script info]", "[v4+ styles]", "[v4 styles]"})
ASS_COLUMNS = ("layer", "start", "end", "style", "name", "marginl", "marginr", "marginv", "effect", "text")


class Cue(NamedTuple):
    """Plain text that one voice says, or that is shown, in `[start_s, end_s)` of the file's own clock."""

    start_s: float
    end_s: float
    text: str
    speaker: str | None = None


def parse_cues(text: str) -> Iterator[Cue]:
    """Yield the cues of a file in its order; the text itself tells which format it is.

    Raises:
        ValueError: it is in none of these formats, or an event of ASS cannot be read.
    """
    lines = text.lstrip("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if text.lstrip("\ufeff \r\n").startswith("WEBVTT"):
        return _vtt_cues(lines)
    if any(line.strip().lower() in ASS_HEADINGS for line in lines):
        return _ass_cues(lines)
    return _srt_cues(lines)


def _srt_cues(lines: Sequence[str]) -> Iterator[Cue]:
    """Yield the cues of SRT: a line with two times begins one, whatever stands around it."""
    found = [(number, stamps) for number, line in enumerate(lines) if len(stamps := TIME.findall(line)) == 2]
    if not found:
        raise ValueError("no line with two times")
    ends = [number for number, _ in found[1:]]
    for (number, (start, end)), until in zip(found, [*ends, None], strict=True):
        body = lines[number + 1 : until]
        if until is not None:
            body = _without_number(body)
        for speaker, words in srt_voices("\n".join(body)):
            yield Cue(_seconds(start), _seconds(end), words, speaker)


def _without_number(body: Sequence[str]) -> Sequence[str]:
    """Take the number of the next cue off the end of a cue's lines; a number alone in the first line is its text."""
    last = len(body) - 1
    while last > 0 and not body[last].strip():
        last -= 1
    return body[:last] if last > 0 and re.fullmatch(r"\s*\d+\s*", body[last]) else body


def _vtt_cues(lines: Sequence[str]) -> Iterator[Cue]:
    """Yield the cues of WebVTT, without its notes, styles, regions and the names of cues."""
    for block in _blocks(lines):
        timing = next((i for i, line in enumerate(block) if "-->" in line), None)
        if timing is None or block[0].startswith("NOTE"):
            continue
        stamps = VTT_TIME.findall(block[timing])
        if len(stamps) < 2:
            continue
        for speaker, words in split_voices("\n".join(block[timing + 1 :])):
            yield Cue(_seconds(stamps[0]), _seconds(stamps[1]), words, speaker)


def _blocks(lines: Sequence[str]) -> Iterator[list[str]]:
    """Group lines that no empty line separates."""
    block: list[str] = []
    for line in [*lines, ""]:
        if line.strip():
            block.append(line)
        elif block:
            yield block
            block = []


def _ass_cues(lines: Sequence[str]) -> Iterator[Cue]:
    """Yield the events of ASS or SSA that are text: no comments, no drawings."""
    columns: Sequence[str] = ASS_COLUMNS
    for number, line in enumerate(lines, 1):
        kind, _, rest = line.strip().partition(":")
        if kind == "Format" and "start" in (names := [name.strip().lower() for name in rest.split(",")]):
            columns = names if {"end", "text"} <= set(names) and names[-1] == "text" else ASS_COLUMNS
        elif kind == "Dialogue":
            fields = dict(zip(columns, rest.strip().split(",", len(columns) - 1), strict=False))
            start, end = (TIME.fullmatch(fields.get(name, "").strip()) for name in ("start", "end"))
            if not start or not end:
                raise ValueError(f"line {number} has no two times")
            if words := ass_text(fields.get("text", "")):
                speaker = fields.get("name", "").strip() or None
                yield Cue(_seconds(start.groups()), _seconds(end.groups()), words, speaker)


def _seconds(stamp: Sequence[str]) -> float:
    """Convert hours (or none), minutes, seconds and the digits behind the point."""
    hours, minutes, seconds, fraction = stamp
    whole_s = int(hours or 0) * 3600 + int(minutes) * 60 + int(seconds)
    return (whole_s * 1000 + int(fraction.ljust(3, "0"))) / 1000
