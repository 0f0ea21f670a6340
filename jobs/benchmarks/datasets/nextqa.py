"""NExT-QA (Xiao et al. 2021, CVPR) and IntentQA (Li et al. 2023, ICCV): why, how and when, five options.

Published as CSV, a row a question. Questions are reported by type: causal (why CW, how CH), temporal (previous TP, next
TN, current TC), descriptive (location DL, counting DC, other DO); both count TP with TN.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from jobs.benchmarks.samples import (
    AS_PUBLISHED,
    AddNote,
    ParsedRows,
    Sample,
    Target,
    csv_rows,
    make_question,
    parse_samples,
)


class _NextQa(BaseModel):
    model_config = AS_PUBLISHED

    video: str
    question: str
    answer: Annotated[int, Field(ge=0, le=4)]
    qid: str
    type: Literal["CW", "CH", "TP", "TN", "TC", "DL", "DC", "DO"]
    a0: str
    a1: str
    a2: str
    a3: str
    a4: str


class _IntentQa(_NextQa):
    video: Annotated[str, Field(alias="video_id")]


def read_nextqa(path: Path) -> ParsedRows:
    """`val.csv` or `test.csv`: all eight types, the seven official ones, and C, T, D."""

    def item(row: _NextQa, note: AddNote) -> Sample:
        official = "TN" if row.type == "TP" else row.type
        return _item(row, {"type": row.type, "official_type": official, "C/T/D": row.type[0]}, note)

    return parse_samples(csv_rows(path), _NextQa, item)


def read_intentqa(path: Path) -> ParsedRows:
    """`test.csv` or `val.csv`: the four types in the file, and the three official ones."""

    def item(row: _IntentQa, note: AddNote) -> Sample:
        official = "TP&TN" if row.type in ("TP", "TN") else row.type
        return _item(row, {"type": row.type, "official_type": official}, note)

    return parse_samples(csv_rows(path), _IntentQa, item)


def _item(row: _NextQa, groups: Mapping[str, str], note: AddNote) -> Sample:
    asked = make_question(row.question, (row.a0, row.a1, row.a2, row.a3, row.a4), note)
    in_each = {breakdown: (group,) for breakdown, group in groups.items()}
    return Sample(f"{row.video}_{row.qid}", row.video, asked, Target(row.answer), in_each)
