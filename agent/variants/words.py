"""Texts, times and ranges in the words of a page, for `Variant.words`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kinodex.index.times import clock

Step = Mapping[str, Any]
"""An `Acted` as a trace has it, with its `action`, `arguments` and `notes`."""
QUOTED = 3
LONGEST = 80


def quoted(texts: Sequence[str]) -> str:
    """Return the first few of some texts in quotation marks, with the count of the others."""
    shown = [f"“{_short(each)}”" for each in texts[:QUOTED]]
    rest = len(texts) - QUOTED
    return joined([*shown, f"{rest} more"] if rest > 0 else shown)


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def for_query(step: Step) -> str:
    """Return the query of a step, " for “a dog”"; "" without one."""
    query = step["arguments"].get("query")
    return f" for {quoted([query])}" if query else ""


def counted_frames(step: Step, more: str = "") -> str:
    """Return the number of frames of a step: "1 frame", "4 more frames"."""
    count = step["arguments"]["frames"]
    return f"{count} {more}frame{'' if count == 1 else 's'}"


def no_step(step: Step) -> str:
    return "got no step from its model that could be taken"


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
