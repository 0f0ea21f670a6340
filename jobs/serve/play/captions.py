"""A video's transcript as WebVTT, for players."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from index.rows import TranscriptRow

SHORTEST_S = 0.001


def captions_vtt(lines: Iterable[TranscriptRow], zero_s: float) -> str:
    """Write lines as WebVTT (W3C) on a clock that begins at `zero_s` of the library's; none that ended before."""
    cues = [_cue(line, zero_s) for line in lines if line.end_s > zero_s and line.text.strip()]
    return "\n\n".join(["WEBVTT", *cues]) + "\n"


def _cue(line: TranscriptRow, zero_s: float) -> str:
    start_s = max(line.start_s - zero_s, 0.0)
    end_s = max(line.end_s - zero_s, start_s + SHORTEST_S)
    said = f"{line.speaker}: {line.text}" if line.speaker else line.text
    # An empty line would end the cue, and "-->" would begin another; escape() takes care of the latter.
    text = "\n".join(part.strip() for part in escape(said, quote=False).splitlines() if part.strip())
    return f"{_clock(start_s)} --> {_clock(end_s)}\n{text}"


def _clock(time_s: float) -> str:
    milliseconds = round(time_s * 1000)
    minutes, rest = divmod(milliseconds, 60_000)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02}:{minutes:02}:{rest // 1000:02}.{rest % 1000:03}"
