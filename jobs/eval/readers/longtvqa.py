"""LongTVQA and LongTVQA+: TVQA and TVQA+ asked about whole episodes (LongVideoAgent, arXiv 2512.20618).

The question is about an episode; the clip where it happens, the seconds in it and the boxes are part of what is true,
and no agent is to know them.
"""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from kinodex.jobs.eval.items import Item, Target
from kinodex.jobs.eval.readers.fields import TimeRange
from kinodex.jobs.eval.rows import AS_PUBLISHED, AddNote, Row, make_question

_PAIR: TypeAdapter[TimeRange] = TypeAdapter(TimeRange, config=AS_PUBLISHED)


class LongTVQARow(Row):
    """In groups by the episode's season. `ts` counts from the start of the clip."""

    qid: str
    q: str
    a0: str
    a1: str
    a2: str
    a3: str
    a4: str
    answer: Annotated[str, Field(pattern="^a[0-4]$")]
    episode_name: Annotated[str, Field(min_length=1)]
    occur_clip: str
    ts: object = None

    def item(self, note: AddNote) -> Item:
        if not self.occur_clip.startswith(self.episode_name):
            note(
                f"occur_clip: got {self.occur_clip}, which is not of episode {self.episode_name}; the question is kept"
            )
        asked = make_question(self.q, (self.a0, self.a1, self.a2, self.a3, self.a4), note)
        truth = Target(int(self.answer[1]), evidence=_clip_range(self.ts, note), clip=self.occur_clip)
        season = re.sub(r"e\d+$", "", self.episode_name)
        return Item(self.qid, self.episode_name, asked, truth, {"season": (season,)})


def _clip_range(ts: object, note: AddNote) -> tuple[TimeRange, ...]:
    """Parse a range written as `[12.3, 20.11]` or as TVQA's `"12.3-20.11"`."""
    try:
        start_s, end_s = _PAIR.validate_python(ts.split("-") if isinstance(ts, str) else ts)
    except ValidationError:
        start_s, end_s = 0.0, 0.0
    if not 0 <= start_s < end_s:
        note(f"ts: got {ts!r}, not a start and a later end in seconds; the question is kept without evidence")
        return ()
    return ((start_s, end_s),)
