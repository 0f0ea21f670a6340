"""CG-Bench: long films, with the clues that answer a question (Chen et al. 2024, arXiv 2412.12075).

A row is a question whose evidence are its `clue_intervals`, in seconds; or, for `kinodex eval ground`, a search whose
moments they are. The benchmark's own scores of an answer's clues, mIoU and recall, are those of the search.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from kinodex.jobs.eval.items import Item, SearchItem, Target
from kinodex.jobs.eval.readers.fields import LengthS, Letter, Options, TimeRange
from kinodex.jobs.eval.rows import AddNote, Row, check_range, lettered_answer, make_groups, make_question


class CluedRow(Row):
    """A row without its options and answer, which would help to find the clues."""

    qid: str
    video_uid: Annotated[str, Field(min_length=1)]
    question: Annotated[str, Field(min_length=1)]
    clue_intervals: tuple[TimeRange, ...] = ()
    domain: str | None = None
    sub_category: str | None = None
    duration: LengthS | None = None


class CGBenchRow(CluedRow):
    """In groups by domain and sub-category. A video's name is its `video_uid`."""

    choices: Options
    right_answer: Letter

    def item(self, note: AddNote) -> Item:
        answer = lettered_answer("right_answer", self.right_answer, self.choices, "choices")
        clues = tuple(clue for clue in self.clue_intervals if 0 <= clue[0] < clue[1])
        if len(clues) < len(self.clue_intervals):
            note("clue_intervals: got one that ends where it begins or before; the question is kept without it")
        asked = make_question(self.question, self.choices, note)
        groups = make_groups(domain=self.domain, sub_category=self.sub_category)
        return Item(self.qid, self.video_uid, asked, Target(answer, evidence=clues), groups, self.duration)


class ClueRow(CluedRow):
    """A question as a search."""

    def item(self, note: AddNote) -> SearchItem:
        clues = tuple((self.video_uid, *check_range("clue_intervals", *clue)) for clue in self.clue_intervals)
        category = self.sub_category or self.domain
        text, video = self.question.strip(), self.video_uid
        return SearchItem(self.qid, "cg-bench", text, video, clues, category=category, duration_s=self.duration)
