"""MLVU: nine tasks about films of three minutes to two hours (Zhou et al. 2024, arXiv 2406.04264).

Published as a JSON array for each task: seven with candidates, whose mean over the tasks is its M-Avg, and two with
free answers, which its judge scores (G-Avg). Rows of the test set have a `question_id` and may have no answer; those
of the dev set have no ids and are known by task and row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Annotated

from pydantic import Field

from kinodex.jobs.eval.items import BadRow, Item, Target
from kinodex.jobs.eval.readers.fields import LengthS, Options
from kinodex.jobs.eval.row_files import json_rows
from kinodex.jobs.eval.rows import AddNote, Raw, Row, make_groups, make_question

MLVU_CHOICES = (
    *("1_plotQA.json", "2_needle.json", "3_ego.json", "4_count.json", "5_order.json"),
    *("6_anomaly_reco.json", "7_topic_reasoning.json"),
)
MLVU_OPEN = ("8_sub_scene.json", "9_summary.json")
MLVU_KINDS = {
    **dict.fromkeys(("topic_reasoning", "anomaly_reco", "summary"), "holistic"),
    **dict.fromkeys(("findNeedle", "ego", "plotQA", "subPlot"), "single detail"),
    **dict.fromkeys(("order", "count"), "multi-detail"),
}


class MLVUOpenRow(Row):
    """A question with a free answer; in groups by task and kind of task."""

    id: str
    video: Annotated[str, Field(min_length=1)]
    duration: LengthS | None = None
    question: str
    question_type: Annotated[str, Field(min_length=1)]
    answer: str | None = None

    def item(self, note: AddNote) -> Item:
        return self._item((), Target(text=self.answer), note)

    def _item(self, options: tuple[str, ...], target: Target, note: AddNote) -> Item:
        groups = make_groups(task=self.question_type, kind=MLVU_KINDS.get(self.question_type))
        asked = make_question(self.question, options, note)
        return Item(self.id, PurePosixPath(self.video).name, asked, target, groups, self.duration)


class MLVURow(MLVUOpenRow):
    """A question with candidates, of which the answer is one."""

    candidates: Options

    def item(self, note: AddNote) -> Item:
        bare, option = [candidate.strip() for candidate in self.candidates], None
        if self.answer is not None:
            if self.answer.strip() not in bare:
                raise BadRow(f"answer: got {self.answer[:60]!r}, which is none of the {len(bare)} candidates")
            option = bare.index(self.answer.strip())
            if bare.count(bare[option]) > 1:
                of_several = "the text of several candidates; the first of them counts as right"
                note(f"answer: got {bare[option][:60]!r}, {of_several}")
        return self._item(self.candidates, Target(option), note)


def _mlvu_rows(files: Sequence[str], path: Path) -> Iterator[Raw]:
    """Read the first of these files with the others beside it, or another file alone."""
    beside = (path.with_name(name) for name in files[1:]) if path.name == files[0] else ()
    for file in (path, *filter(Path.is_file, beside)):
        for number, (where, raw) in enumerate(json_rows(file), start=1):
            place = where if file is path else f"{file.name}, {where}"
            if isinstance(raw, dict):
                known = raw.get("question_id")
                raw = {"id": str(known) if isinstance(known, str | int) else f"{file.stem}-{number}", **raw}
            yield place, raw


mlvu_rows, mlvu_open_rows = partial(_mlvu_rows, MLVU_CHOICES), partial(_mlvu_rows, MLVU_OPEN)
