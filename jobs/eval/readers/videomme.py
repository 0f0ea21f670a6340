"""Video-MME: 900 films of seconds to an hour, four options (Fu et al. 2024, arXiv 2405.21075).

Subtitles are a choice of the run.
"""

from __future__ import annotations

import re
import string
from typing import Annotated, Literal

from pydantic import Field

from kinodex.jobs.eval.items import BadRow, Item, Target
from kinodex.jobs.eval.readers.fields import Letter, Options
from kinodex.jobs.eval.rows import AddNote, Row, lettered_answer, make_groups, make_question

_LETTER = re.compile(r"\s*([A-Z])[.:)]\s*")


class VideoMMERow(Row):
    """In groups by duration, domain, sub-category and task. A video's name is its YouTube id."""

    duration: Literal["short", "medium", "long"]
    domain: str
    sub_category: str
    video: Annotated[str, Field(alias="videoID")]
    question_id: str
    task_type: str
    question: str
    options: Options
    answer: Letter

    def item(self, note: AddNote) -> Item:
        answer = lettered_answer("answer", self.answer, self.options)
        letters = [match and match[1] for match in map(_LETTER.match, self.options)]
        if letters != list(string.ascii_uppercase[: len(self.options)]):
            raise BadRow(f"options: got {' | '.join(self.options)!r:.80}; each begins with its letter, from A. on")
        asked = make_question(self.question, [_LETTER.sub("", option, count=1) for option in self.options], note)
        groups = make_groups(
            **{name: getattr(self, name) for name in ("duration", "domain", "sub_category", "task_type")}
        )
        return Item(self.question_id, self.video, asked, Target(answer), groups)
