"""A video's transcript as WebVTT, for players."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from kinodex.index.rows import SpeechRow
from kinodex.index.times import cue_clock

SHORTEST_S = 0.001


def captions_vtt(lines: Iterable[SpeechRow], zero_s: float) -> str:
    """Write lines as WebVTT (W3C) on a clock that begins at `zero_s` of the library's; none that ended before."""
    cues = [_cue(line, zero_s) for line in lines if line.end_s > zero_s and line.text.strip()]
    return "\n\n".join(["WEBVTT", *cues]) + "\n"


def _cue(line: SpeechRow, zero_s: float) -> str:
    start_s = max(line.start_s - zero_s, 0.0)
    end_s = max(line.end_s - zero_s, start_s + SHORTEST_S)
    said = f"{line.speaker}: {line.text}" if line.speaker else line.text
    # An empty line would end the cue, and "-->" would begin another; escape() takes care of the latter.
    text = "\n".join(part.strip() for part in escape(said, quote=False).splitlines() if part.strip())
    return f"{cue_clock(start_s)} --> {cue_clock(end_s)}\n{text}"
