"""Questions and searches of one's own: a line of JSON each. docs/evaluation.md shows the lines."""

from __future__ import annotations

import string
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from pydantic import StringConstraints

from kinodex.index.text import composed
from kinodex.jobs.eval.items import BadRow, Item, Range, SearchItem, Target
from kinodex.jobs.eval.readers.fields import Options, TimeRange
from kinodex.jobs.eval.row_files import json_lines
from kinodex.jobs.eval.rows import AddNote, Raw, Row, check_range, is_there, make_question

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class OwnOpenRow(Row, extra="forbid"):
    """A question without options; a misspelt field would silently leave out an answer or a range."""

    id: Text
    video: Text
    question: str
    answer: Annotated[str, StringConstraints(strip_whitespace=True)] | None = None
    evidence: tuple[TimeRange, ...] = ()
    category: Text | tuple[Text, ...] = ()

    def item(self, note: AddNote) -> Item:
        return self._item((), Target(text=self.answer, evidence=self.evidence), note)

    def _item(self, options: tuple[str, ...], truth: Target, note: AddNote) -> Item:
        for start_s, end_s in self.evidence:
            if not 0 <= start_s < end_s:
                raise BadRow(f"evidence: got {start_s} to {end_s}; it is a start from 0 on and a later end in seconds")
        categories = (self.category,) if isinstance(self.category, str) else self.category
        groups = {"category": categories} if categories else {}
        return Item(self.id, self.video, make_question(self.question, options, note), truth, groups)


class OwnRow(OwnOpenRow):
    """A question with options; `answer` is the right option's own words or its letter."""

    options: Options

    def item(self, note: AddNote) -> Item:
        option = None if self.answer is None else _own_option(self.options, self.answer)
        return self._item(self.options, Target(option, evidence=self.evidence), note)


def _own_option(options: tuple[str, ...], answer: str) -> int:
    """Find the option with these words, in the same case first, else with this letter: an option may be a letter."""
    answer, bare = composed(answer), [composed(option.strip()) for option in options]
    folded = [option.casefold() for option in bare]
    letters = list(string.ascii_lowercase[: len(options)])
    for wanted, known in ((answer, bare), (answer.casefold(), folded), (answer.casefold(), letters)):
        if known.count(wanted) > 1:
            raise BadRow(f"answer: got {answer!r}, which are the words of {known.count(wanted)} options; give a letter")
        if wanted in known:
            return known.index(wanted)
    raise BadRow(f"answer: got {answer!r}; it is one of the options, or a letter up to {letters[-1].upper()}")


class OwnSearchRow(Row, extra="forbid"):
    """A search and its moments, [start, end] in `video`, or [video, start, end]; `image` is a path."""

    id: Text
    text: Annotated[str, StringConstraints(strip_whitespace=True)] = ""
    image: Text | None = None
    video: Text | None = None
    relevant: tuple[tuple[float, float] | tuple[Text, float, float], ...] = ()
    grades: tuple[float, ...] | None = None
    absent: bool = False
    category: Text | None = None

    def item(self, note: AddNote) -> SearchItem:
        image = None if self.image is None else Path(self.image)
        if image is not None and not is_there(image):
            raise BadRow(f"image: there is no file {image}; give its path from the folder of the file of searches")
        if not self.text and image is None:
            raise BadRow("text: got neither text nor image; a search has one of them, or both")
        if self.absent and self.relevant:
            raise BadRow(f"absent: got true and {len(self.relevant)} relevant moments; give one of them")
        if not self.absent and not self.relevant:
            note('relevant: got no moment; the search is kept and not scored (say "absent": true if there is none)')
        if self.grades is not None:
            if len(self.grades) != len(self.relevant):
                raise BadRow(f"grades: got {len(self.grades)}; there are {len(self.relevant)} relevant moments")
            if not all(grade > 0 for grade in self.grades):
                raise BadRow(f"grades: got {min(self.grades):g}; each is more than 0")
        relevant = tuple(map(self._range, self.relevant))
        found = (relevant, self.grades, image, self.absent, self.category)
        return SearchItem(self.id, "own", self.text, self.video, *found)

    def _range(self, moment: tuple[float, float] | tuple[str, float, float]) -> Range:
        if len(moment) == 3:
            name, start_s, end_s = moment
            if self.video not in (None, name):
                raise BadRow(f"relevant: got a moment of {name}, and {self.video} is the video that is searched")
            return (name, *check_range("relevant", start_s, end_s))
        if self.video is None:
            raise BadRow("relevant: got [start, end] and no video; give video, or moments as [video, start, end]")
        return (self.video, *check_range("relevant", *moment))


def own_rows(path: Path) -> Iterator[Raw]:
    """Read searches; the path of an image counts from the folder of the file."""
    for where, raw in json_lines(path):
        image = raw.get("image") if isinstance(raw, dict) else None
        if isinstance(image, str) and image.strip():
            raw = {**raw, "image": str(path.parent / image.strip())}
        yield where, raw
