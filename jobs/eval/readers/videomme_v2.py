"""Video-MME-v2: 800 films with a group of four questions each, eight options (Fu et al. 2026, arXiv 2604.05015).

Its own score is by group, not by question: `kinodex.jobs.eval.scoring.groups.group_scores`.
"""

from __future__ import annotations

import re
import string
from typing import Annotated, Literal

from pydantic import Field, field_validator

from kinodex.jobs.eval.items import Item, Target
from kinodex.jobs.eval.readers.fields import Letter, Options
from kinodex.jobs.eval.rows import AddNote, Row, lettered_answer, make_groups, make_question

STRUCTURES = ("[1,2,3,4]", "[1,[2,3],4]", "[[1,2],3,4]")
"""The orders in which a chain of four questions may stand."""
_LINE_LETTER = re.compile(r"^\s*([A-Z])[.)]\s*", re.MULTILINE)


class VideoMMEv2Row(Row):
    """In groups by level, type of the group, and both heads. A video's name is its number, as 001."""

    video_id: Annotated[str, Field(min_length=1)]
    question_id: str
    question: str
    options: Options
    answer: Letter
    group_type: Literal["relevance", "logic"]
    group_structure: str | None = None
    level: str | None = None
    second_head: str | None = None
    third_head: str | None = None

    @field_validator("options", mode="before")
    @classmethod
    def _lines(cls, options: object) -> object:
        """Split a text of lettered lines, in which an option may go over several; a list without letters stays one."""
        if isinstance(options, list | tuple) and options and all(_LINE_LETTER.match(str(each)) for each in options):
            options = "\n".join(map(str, options))
        if not isinstance(options, str):
            return options
        before, *parts = _LINE_LETTER.split(options)
        letters = "".join(parts[::2])
        if before.strip() or letters != string.ascii_uppercase[: len(letters)]:
            raise ValueError(f"got {options[:60]!r}; each option is on a line and begins with its letter, from A. on")
        return parts[1::2]

    def item(self, note: AddNote) -> Item:
        structure = (self.group_structure or "").replace(" ", "")
        if self.group_type == "logic" and structure not in STRUCTURES:
            note(f"group_structure: got {structure or 'none'}; its group is scored as {STRUCTURES[0]}")
        names = ("level", "group_type", "group_structure", "second_head", "third_head")
        groups = {name: value for name in names if (value := getattr(self, name)) != "None"}
        asked = make_question(self.question, self.options, note)
        truth = Target(lettered_answer("answer", self.answer, self.options))
        return Item(self.question_id, self.video_id, asked, truth, make_groups(**groups))
