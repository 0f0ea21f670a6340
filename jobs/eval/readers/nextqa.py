"""NExT-QA (Xiao et al. 2021, CVPR) and IntentQA (Li et al. 2023, ICCV): why, how and when, five options.

Questions are reported by type: causal (why CW, how CH), temporal (previous TP, next TN, current TC), descriptive
(location DL, counting DC, other DO); both count TP with TN.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from kinodex.jobs.eval.items import Item, Target
from kinodex.jobs.eval.rows import AddNote, Row, make_groups, make_question


class NextQARow(Row):
    """In groups by all eight types, the seven official ones, and C, T, D."""

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

    def item(self, note: AddNote) -> Item:
        official = "TN" if self.type == "TP" else self.type
        return self._item({"type": self.type, "official_type": official, "C/T/D": self.type[0]}, note)

    def _item(self, groups: Mapping[str, str], note: AddNote) -> Item:
        asked = make_question(self.question, (self.a0, self.a1, self.a2, self.a3, self.a4), note)
        return Item(f"{self.video}_{self.qid}", self.video, asked, Target(self.answer), make_groups(**groups))


class IntentQARow(NextQARow):
    """In groups by the four types in the file, and the three official ones."""

    video: Annotated[str, Field(alias="video_id")]

    def item(self, note: AddNote) -> Item:
        official = "TP&TN" if self.type in ("TP", "TN") else self.type
        return self._item({"type": self.type, "official_type": official}, note)
