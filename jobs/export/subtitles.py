"""Moments of one video as subtitles or chapters: WebVTT (W3C) and SubRip, on the clock that a player shows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from kinodex.index.times import cue_clock
from kinodex.jobs.export.moments import Moment, in_time_order

LEAST_MS = 1


class _Cue(NamedTuple):
    start_ms: int
    end_ms: int
    text: str
    speaker: str | None


def vtt_text(moments: Iterable[Moment]) -> str:
    """Write WebVTT: a cue a moment, in time order; a speaker is its voice. A title names the video."""
    ordered = in_time_order(moments)
    head = f"WEBVTT - {_plain(ordered[0].video.title)}\n" if ordered else "WEBVTT\n"
    cues = []
    for cue in _cues(ordered):
        voice = f"<v {_escaped(_plain(cue.speaker)).replace('&gt;', '')}>" if cue.speaker else ""
        times = f"{cue_clock(cue.start_ms / 1000)} --> {cue_clock(cue.end_ms / 1000)}"
        cues.append(f"\n{times}\n{voice}{_escaped(cue.text)}\n")
    return head + "".join(cues)


def srt_text(moments: Iterable[Moment]) -> str:
    """Write SubRip: numbered cues in time order; a speaker stands before a colon."""
    cues = []
    for number, cue in enumerate(_cues(in_time_order(moments)), start=1):
        text = f"{_plain(cue.speaker)}: {cue.text}" if cue.speaker else cue.text
        times = f"{cue_clock(cue.start_ms / 1000, ',')} --> {cue_clock(cue.end_ms / 1000, ',')}"
        cues.append(f"{number}\n{times}\n{text.replace('-->', '→')}\n\n")
    return "".join(cues)


def _cues(moments: Sequence[Moment]) -> Iterator[_Cue]:
    """Yield the cues that a player shows; before its 0:00 it shows none, and a cue takes a millisecond at least."""
    for each in moments:
        start_ms, end_ms = max(round(1000 * each.start_s), 0), round(1000 * each.end_s)
        if end_ms >= 0:
            text = re.sub(r"\s*\n\s*", "\n", each.label.replace("\r", "\n")).strip()  # an empty line would end the cue
            yield _Cue(start_ms, max(end_ms, start_ms + LEAST_MS), text or f"{each.source}", each.speaker)


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _plain(text: str) -> str:
    """Return one line without what would begin the times of a cue."""
    return " ".join(text.split()).replace("-->", "→")
