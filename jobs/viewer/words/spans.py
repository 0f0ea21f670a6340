"""Ranges of time and lists in words, as a sentence holds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def clock(time_s: float) -> str:
    """A time as a player shows it, with tenths only where it has some: 75.5 -> "1:15.5", 3675 -> "1:01:15"."""
    tenths = round(time_s * 10)
    minutes, rest = divmod(tenths, 600)
    hours, minutes = divmod(minutes, 60)
    seconds = f"{rest // 10:02d}" + (f".{rest % 10}" if rest % 10 else "")
    return f"{hours}:{minutes:02d}:{seconds}" if hours else f"{minutes}:{seconds}"


def span(part: Mapping[str, Any]) -> str:
    """Range of a segment, a note, or a tool's arguments, in words; "" without a start."""
    start_s, end_s = part.get("start_s"), part.get("end_s")
    if start_s is None:
        return ""
    return clock(start_s) if end_s is None else f"{clock(start_s)} to {clock(end_s)}"


def joined(parts: Sequence[str]) -> str:
    """Clauses as one list: "a", "a and b", "a, b, and c"."""
    if len(parts) < 3:
        return " and ".join(parts)
    return f"{', '.join(parts[:-1])}, and {parts[-1]}"
