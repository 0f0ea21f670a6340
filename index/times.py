"""Times as people write and read them: one parser, and one printer for each kind of reader.

Everywhere else a time is a number of seconds. `parse_time` reads what a person types or copies from a page, `clock`
prints times for people, `player_clock` for models, and `cue_clock` for files of subtitles.
"""

from __future__ import annotations

import math
import re

from kinodex.index.errors import QueryError

CLOCK = re.compile(r"(?:(\d+):)?(\d+):(\d{1,2}(?:[.,]\d*)?)")


def parse_time(text: str) -> float:
    """Return the seconds of a time: a number of seconds, or a clock time.

    Raises QueryError for what is neither.

    >>> parse_time("90.5"), parse_time("1:30.5"), parse_time("1:02:05")
    (90.5, 90.5, 3725.0)
    """
    try:
        time_s = _clock_s(text.strip()) if ":" in text else float(text)
    except ValueError:
        time_s = math.nan
    if not math.isfinite(time_s):
        raise QueryError(f"got the time {text[:40]!r}; give seconds (90.5) or a clock time (1:30.5, 1:02:05)")
    return time_s


def _clock_s(text: str) -> float:
    match = CLOCK.fullmatch(text)
    if match is None:
        return math.nan
    hours, minutes, seconds = match.groups()
    second = float(seconds.replace(",", "."))
    if second >= 60 or (hours is not None and int(minutes) >= 60):
        return math.nan
    return 3600.0 * int(hours or 0) + 60.0 * int(minutes) + second


def clock(time_s: float) -> str:
    """Return a time as people read it, to a tenth of a second; `parse_time` reads it again.

    >>> clock(75.5), clock(3675)
    ('1:15.5', '1:01:15.0')
    """
    tenths = round(time_s * 10)
    minutes, rest = divmod(tenths, 600)
    hours, minutes = divmod(minutes, 60)
    tail = f"{rest / 10:04.1f}"
    return f"{hours}:{minutes:02d}:{tail}" if hours else f"{minutes}:{tail}"


def player_clock(time_s: float) -> str:
    """Return a time as a player shows it: whole seconds, cut and not rounded.

    >>> player_clock(75.9), player_clock(3675)
    ('1:15', '1:01:15')
    """
    sign, seconds = "-" if time_s < 0 else "", int(abs(time_s))
    hours, minutes = divmod(seconds // 60, 60)
    return f"{sign}{hours}:{minutes:02}:{seconds % 60:02}" if hours else f"{sign}{minutes}:{seconds % 60:02}"


def cue_clock(time_s: float, point: str = ".") -> str:
    """Return a time of a subtitle file: with a full stop as in WebVTT, or a comma as in SubRip.

    >>> cue_clock(75.5)
    '00:01:15.500'
    """
    seconds, milliseconds = divmod(round(time_s * 1000), 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02}:{minutes:02}:{seconds:02}{point}{milliseconds:03}"
