"""Times as prompts write them: in seconds, and from a minute on as a clock too.

Models read "1:23" in a picture, a question or a subtitle, and seconds in a prompt: both stand side by side.
"""

from __future__ import annotations

from typing import Any

from kinodex.index.times import player_clock

CLOCK_FROM_S = 60.0
"""Times from here on are shown as clock time too."""


def beside(time_s: float) -> str:
    """Return the clock time to write after a time in seconds, " (1:23)"; "" within the first minute."""
    return f" ({player_clock(time_s)})" if time_s >= CLOCK_FROM_S else ""


def seconds(time_s: float) -> str:
    """Return a time in seconds, to a tenth: "83 s", "83.5 s"."""
    return f"{time_s:.1f}".removesuffix(".0") + " s"


def beside_range(part: Any) -> str:
    """Return the clock times to write after a range in seconds, " (1:23 to 1:02:05)"; "" within the first minute."""
    return f" ({player_clock(part.start_s)} to {player_clock(part.end_s)})" if part.end_s >= CLOCK_FROM_S else ""
