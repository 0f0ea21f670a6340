"""Cues that repeat a text, joined to one: signs that are set anew for every frame, and captions that roll up."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from kinodex.pipeline.subtitles.cues import Cue

TOUCH_S = 0.05
"""Two cues touch if no more time than a frame lies between them."""


def unrolled(cues: Iterable[Cue]) -> list[Cue]:
    """Join cues of the same text that touch; of rows that stood in the cue before, only the new ones are said then."""
    said: list[Cue] = []
    places: dict[tuple[str | None, str], int] = {}
    before, last = Cue(-math.inf, -math.inf, ""), 0
    for cue in sorted(cues, key=lambda cue: (cue.start_s, cue.end_s)):
        place = places.get((cue.speaker, cue.text))
        if place is None or cue.start_s - said[place].end_s > TOUCH_S:
            rows = cue.text.split("\n")
            again = _rows_again(before, cue.speaker, rows) if cue.start_s - before.end_s <= TOUCH_S else 0
            place = last if again == len(rows) else len(said)
            if place == len(said):
                said.append(cue._replace(text="\n".join(rows[again:])))
                places[cue.speaker, said[-1].text] = place
        said[place] = said[place]._replace(end_s=max(said[place].end_s, cue.end_s))
        before, last = cue, place
    return said


def _rows_again(before: Cue, speaker: str | None, rows: Sequence[str]) -> int:
    """Count the first rows of a cue that were the last ones of the cue before it."""
    held = before.text.split("\n")
    if before.speaker != speaker:
        return 0
    return next((count for count in range(min(len(held), len(rows)), 0, -1) if held[-count:] == rows[:count]), 0)
