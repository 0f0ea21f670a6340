"""LongTVQA and LongTVQA+: TVQA and TVQA+ asked about whole episodes (LongVideoAgent, arXiv 2512.20618).

Published as an array of JSON, also in files named `.jsonl`. The question is about an episode; the clip where it
happens, the seconds in it and the boxes are part of what is true, and no agent is to know them.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from jobs.benchmarks.samples import (
    AS_PUBLISHED,
    AddNote,
    ParsedRows,
    Sample,
    Target,
    json_rows,
    make_question,
    parse_samples,
)

_PAIR: TypeAdapter[tuple[float, float]] = TypeAdapter(tuple[float, float], config=AS_PUBLISHED)


class _Row(BaseModel):
    model_config = AS_PUBLISHED

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


def read_longtvqa(path: Path) -> ParsedRows:
    """Read questions, grouped by the episode's season. `ts` counts from the start of the clip."""
    return parse_samples(json_rows(path), _Row, _item)


def _item(row: _Row, note: AddNote) -> Sample:
    if not row.occur_clip.startswith(row.episode_name):
        note(f"occur_clip: got {row.occur_clip}, which is not of episode {row.episode_name}; the question is kept")
    asked = make_question(row.q, (row.a0, row.a1, row.a2, row.a3, row.a4), note)
    truth = Target(int(row.answer[1]), evidence=_evidence(row.ts, note), clip=row.occur_clip)
    season = re.sub(r"e\d+$", "", row.episode_name)
    return Sample(row.qid, row.episode_name, asked, truth, {"season": (season,)})


def _evidence(ts: object, note: AddNote) -> tuple[tuple[float, float], ...]:
    """Parse a range written as `[12.3, 20.11]` or as TVQA's `"12.3-20.11"`."""
    try:
        start_s, end_s = _PAIR.validate_python(ts.split("-") if isinstance(ts, str) else ts)
    except ValidationError:
        start_s, end_s = 0.0, 0.0
    if not 0 <= start_s < end_s:
        note(f"ts: got {ts!r}, not a start and a later end in seconds; the question is kept without evidence")
        return ()
    return ((start_s, end_s),)
