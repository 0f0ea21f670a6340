"""The reason why a moment was found, in one plain phrase."""

from __future__ import annotations

import re
from typing import Literal

from agent.prompts.times import clock
from index.rows import Hit
from jobs.viewer.search.moments import Moment

By = Literal["words", "frame", "picture"]
LOOKS = {"words": "looks like the words", "frame": "looks like that frame", "picture": "looks like the picture"}
ALIKE = 0.7
"""Below this part of the best picture's similarity a picture is called somewhat alike."""
WIDTH = 90
"""Characters of a text that a reason quotes."""
WORD = re.compile(r"\w+")


def why(moment: Moment, text: str, by: By = "words", picture_share: float = 1.0) -> str:
    """Say why a moment was found: "looks like the words", "said at 0:31: ...", "both seen and said: ..." and so on.

    `picture_share` is the similarity of its picture as a part of the best picture's.
    """
    parts = [name for name, part in _named(moment).items() if part is not None]
    quoted = moment.line or moment.shown or moment.caption
    if len(parts) > 1 and quoted is not None:
        *first, last = parts
        together = f"both {first[0]} and {last}" if len(first) == 1 else f"{', '.join(first)} and {last}"
        return f"{together}: {excerpt(quoted.text, text)}"
    if moment.line is not None:
        by_whom = f" by {moment.line.speaker}" if moment.line.speaker else ""
        return f"said at {clock(moment.line.time_s)}{by_whom}: {excerpt(moment.line.text, text)}"
    if moment.shown is not None:
        return f"on screen at {clock(moment.shown.time_s)}: {excerpt(moment.shown.text, text)}"
    if moment.caption is not None:
        return f"described: {excerpt(moment.caption.text, text)}"
    if moment.detection is not None:
        return f"a detector found: {moment.detection.text}, {moment.detection.score:.0%} sure"
    return LOOKS[by] if picture_share >= ALIKE else LOOKS[by].replace("looks", "looks somewhat", 1)


def _named(moment: Moment) -> dict[str, Hit | None]:
    return {
        "seen": moment.frame,
        "said": moment.line,
        "shown as text": moment.shown,
        "described": moment.caption,
        "detected": moment.detection,
    }


def excerpt(text: str | None, query: str, width: int = WIDTH) -> str:
    """Cut the part of a text around the first word that it shares with a query; "…" stands for what is left out."""
    whole = " ".join((text or "").split())
    if len(whole) <= width:
        return whole
    wanted = {word.casefold() for word in WORD.findall(query)}
    at = next((found.start() for found in WORD.finditer(whole) if found[0].casefold() in wanted), 0)
    begin = max(0, min(at - width // 3, len(whole) - width))
    if begin:
        space = whole.find(" ", begin, at)
        begin = begin if space < 0 else space + 1
    end = len(whole) if begin + width >= len(whole) else max(whole.rfind(" ", begin, begin + width), begin)
    end = end if end > begin else min(begin + width, len(whole))
    return f"{'… ' if begin else ''}{whole[begin:end]}{' …' if end < len(whole) else ''}"
