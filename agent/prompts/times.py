"""Times as prompts write them: in seconds, and from a minute on as a clock too.

Models read "1:23" in a picture, a question or a subtitle, and seconds in a prompt: both stand side by side.
"""

from __future__ import annotations

from typing import Protocol

CLOCK_FROM_S = 60.0
"""Times from here on are shown as clock time too."""


class Ranged(Protocol):
    """A part of a video: a segment, a note, a video."""

    @property
    def start_s(self) -> float: ...
    @property
    def end_s(self) -> float: ...


def clock(time_s: float) -> str:
    """A time as a player shows it, "1:23" or "1:02:05": whole seconds, cut, not rounded."""
    sign, seconds = "-" if time_s < 0 else "", int(abs(time_s))
    hours, minutes = divmod(seconds // 60, 60)
    return f"{sign}{hours}:{minutes:02}:{seconds % 60:02}" if hours else f"{sign}{minutes}:{seconds % 60:02}"


def beside(time_s: float) -> str:
    """The clock time to write after a time in seconds, " (1:23)"; "" within the first minute."""
    return f" ({clock(time_s)})" if time_s >= CLOCK_FROM_S else ""


def seconds(time_s: float) -> str:
    """A time in seconds, to a tenth: "83 s", "83.5 s"."""
    return f"{time_s:.1f}".removesuffix(".0") + " s"


def beside_range(part: Ranged) -> str:
    """The clock times to write after a range in seconds, " (1:23 to 1:02:05)"; "" within the first minute."""
    return f" ({clock(part.start_s)} to {clock(part.end_s)})" if part.end_s >= CLOCK_FROM_S else ""
