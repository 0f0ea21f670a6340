"""The reason why a moment was found, in one plain phrase."""

from __future__ import annotations

import re
from typing import Literal

from kinodex.index.kinds import KINDS
from kinodex.index.rows import Hit
from kinodex.index.times import clock

By = Literal["words", "frame", "picture"]
LOOKS = {
    "words": "its picture is near the words",
    "frame": "looks like that frame",
    "picture": "looks like the picture",
    "clips": "its movement is near the words",
}
WIDTH = 90
"""Characters of a text that a reason quotes."""
WORD = re.compile(r"\w+")


def why(hit: Hit, text: str, by: By = "words") -> str:
    """Say why a moment was found.

    "its picture is near the words", "said at 0:31.0: ...", "both seen and said: ...".
    """
    parts = hit.parts or (hit,)
    quoted = next((part for part in parts if part.text), None)
    if len(parts) > 1 and quoted is not None:
        *first, last = [how_found(part) for part in parts]
        together = f"both {first[0]} and {last}" if len(first) == 1 else f"{', '.join(first)} and {last}"
        return f"{together}: {excerpt(quoted.text, text)}"
    match hit.found_in:
        case "speech":
            by_whom = f" by {hit.speaker}" if hit.speaker else ""
            return f"said at {clock(hit.time_s)}{by_whom}: {excerpt(hit.text, text)}"
        case "screen_text":
            return f"on screen at {clock(hit.time_s)}: {excerpt(hit.text, text)}"
        case "detections":
            return f"a detector found: {hit.text}, {hit.score:.0%} sure"
        case "frames" | "clips" | "several":
            return LOOKS["clips" if hit.found_in == "clips" and by == "words" else by]
    return f"{how_found(hit)}: {excerpt(hit.text, text)}"


def how_found(hit: Hit) -> str:
    """Say in a word how a hit was found: "seen", "said"; a row of an extract is described."""
    kind = KINDS.get(hit.found_in)
    return "described" if kind is None else kind.found


def excerpt(text: str | None, query: str, width: int = WIDTH) -> str:
    """Cut the part of a text around the first word that it shares with a query; "…" stands for what is left out."""
    whole = " ".join((text or "").split())
    if len(whole) <= width:
        return whole
    wanted = word_set(query)
    at = next((found.start() for found in WORD.finditer(whole) if found[0].casefold() in wanted), 0)
    begin = max(0, min(at - width // 3, len(whole) - width))
    if begin:
        space = whole.find(" ", begin, at)
        begin = begin if space < 0 else space + 1
    end = len(whole) if begin + width >= len(whole) else max(whole.rfind(" ", begin, begin + width), begin)
    end = end if end > begin else min(begin + width, len(whole))
    return f"{'… ' if begin else ''}{whole[begin:end]}{' …' if end < len(whole) else ''}"


def word_set(text: str) -> set[str]:
    """Return the words of a text, in any case."""
    return {word.casefold() for word in WORD.findall(text)}
