"""MINERVA: questions of several steps about films of two minutes to an hour and a half.

Nagrani et al. 2025, arXiv 2505.00681. Each row has a reasoning trace written by hand; it holds the answer, so nothing
of it goes into an item.
"""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AliasChoices, Field

from kinodex.jobs.eval.items import BadRow, Item, Target
from kinodex.jobs.eval.rows import AddNote, Row, make_groups, make_question

_YOUTUBE = re.compile(r"(?:[?&]v=|youtu\.be/|/shorts/|/embed/)([\w-]+)")


class MinervaRow(Row):
    """In groups by each skill that it needs, domain and category. A video's name is its YouTube id."""

    key: str
    video_id: Annotated[str, Field(min_length=1)]
    question: str
    answer: str | None = None
    answer_choice_0: str
    answer_choice_1: str
    answer_choice_2: str
    answer_choice_3: str
    answer_choice_4: str
    answer_id: Annotated[int, Field(ge=0, le=4)]
    question_type: Annotated[str, Field(validation_alias=AliasChoices("question_type", "question type"))] = ""
    split: str = ""
    category: str = ""

    def item(self, note: AddNote) -> Item:
        options = [getattr(self, f"answer_choice_{number}") for number in range(5)]
        if not all(option.strip() for option in options):
            raise BadRow("answer_choice: got one without words; there are five")
        if self.answer is not None and self.answer.strip() != options[self.answer_id].strip():
            other = f"not the text of choice {self.answer_id}; the question is kept with that"
            note(f"answer: got {self.answer[:60]!r}, {other}")
        skills = tuple(filter(None, map(str.strip, self.question_type.split(","))))
        groups = {**({"skill": skills} if skills else {}), **make_groups(split=self.split, category=self.category)}
        address = _YOUTUBE.search(self.video_id)
        video = address[1] if address else self.video_id
        return Item(self.key, video, make_question(self.question, options, note), Target(self.answer_id), groups)
