"""The benchmark of drawn films, in a file as a user has one: a line of JSON for each question."""

from __future__ import annotations

from pathlib import Path

from kinodex.jobs.eval.benchmarks import BenchmarkInfo
from kinodex.jobs.eval.items import BadRow, Item, Target
from kinodex.jobs.eval.readers.fields import TimeRange
from kinodex.jobs.eval.row_files import json_lines
from kinodex.jobs.eval.rows import AddNote, Row, make_groups, make_question


class SketchRow(Row):
    """A question about a drawn film: in groups by the kind of moment that it asks for, in a story by what it needs."""

    question_id: str
    video: str
    kind: str
    question: str
    options: tuple[str, ...]
    answer: int
    evidence: TimeRange
    ranges: tuple[TimeRange, ...] = ()
    needs: str | None = None

    def item(self, note: AddNote) -> Item:
        if not 0 <= self.answer < len(self.options):
            raise BadRow(f"answer: got {self.answer}; there are {len(self.options)} options, counted from 0")
        evidence = self.ranges or (self.evidence,)
        for start_s, end_s in evidence:
            if not 0 <= start_s < end_s:
                raise BadRow(f"evidence: got {start_s} to {end_s}; it is a start and a later end in seconds")
        asked = make_question(self.question, self.options, note)
        groups = make_groups(kind=self.kind, needs=self.needs)
        return Item(self.question_id, self.video, asked, Target(self.answer, evidence=evidence), groups)


SKETCH = BenchmarkInfo(
    "Sketch world",
    json_lines,
    SketchRow,
    ("questions.jsonl",),
    had_from="python -m tests.world.sample FOLDER --hours 4, in a checkout",
    licence="yours: the films are drawn by code",
)
SKETCHES = str(Path(__file__).resolve())
"""Its name for `kinodex eval`."""
