"""Counts and durations in words."""

from __future__ import annotations

UNITS = (("s", 1, 90), ("min", 60, 90), ("h", 3600, 48), ("days", 86400, float("inf")))


def duration(seconds: float) -> str:
    """Format a duration for people: "2.5 s", "40 s", "12 min", "3.5 h", "2.1 days"."""
    unit, size = next((unit, size) for unit, size, most in UNITS if seconds < most * size)
    count = seconds / size
    return f"{count:.1f} {unit}" if count < 10 else f"{count:.0f} {unit}"


def counted(number: int, thing: str) -> str:
    """Return a count with its noun: "1 frame", "2,000 frames"."""
    return f"{number:,} {thing}{'s' * (number != 1)}"
