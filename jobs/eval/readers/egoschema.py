"""EgoSchema: three-minute films of daily life, five options (Mangalam et al. 2023, arXiv 2308.09126).

Published as `questions.json` (5,031 rows, no answers) and `subset_answers.json` (`{q_uid: index}` of 500). LLoVi and
others hand out the 500 as one file, `subset_anno.json`: `{q_uid: row with "truth"}`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from kinodex.jobs.errors import UsageError
from kinodex.jobs.eval.items import BadRow, Item, Target
from kinodex.jobs.eval.row_files import json_file
from kinodex.jobs.eval.rows import AddNote, Raw, Row, make_question

EGOSCHEMA_FILES = ("subset_anno.json", "questions.json")
EGOSCHEMA_ANSWERS = "subset_answers.json"
EGOSCHEMA_S = 180.0


class EgoSchemaRow(Row):
    """One of all questions: only the benchmark's server knows most of the answers."""

    q_uid: str
    question: str
    option_0: Annotated[str, Field(alias="option 0")]
    option_1: Annotated[str, Field(alias="option 1")]
    option_2: Annotated[str, Field(alias="option 2")]
    option_3: Annotated[str, Field(alias="option 3")]
    option_4: Annotated[str, Field(alias="option 4")]
    truth: Annotated[int | None, Field(ge=0, le=4)] = None
    file: str

    def item(self, note: AddNote) -> Item:
        options = (self.option_0, self.option_1, self.option_2, self.option_3, self.option_4)
        asked = make_question(self.question, options, note)
        return Item(self.q_uid, self.q_uid, asked, Target(self.truth), duration_s=EGOSCHEMA_S)


class EgoSchemaSubsetRow(EgoSchemaRow):
    """One of the 500 questions with a published answer."""

    def item(self, note: AddNote) -> Item:
        if self.truth is None:
            raise BadRow(f"no truth; give {EGOSCHEMA_ANSWERS} beside {self.file}, or ask for egoschema-full")
        return super().item(note)


def egoschema_rows(path: Path) -> list[Raw]:
    """Read all rows, with the answers of the file beside them where they have none."""
    published, answers = json_file(path), _egoschema_answers(path)
    rows = list(published.values()) if isinstance(published, dict) else published
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise UsageError(f"{path} is no list or object of questions; give {' or '.join(EGOSCHEMA_FILES)} as published")
    return [
        (f"row {number}", {"truth": answers.get(str(row.get("q_uid"))), **_held(row), "file": path.name})
        for number, row in enumerate(rows, start=1)
    ]


def egoschema_subset_rows(path: Path) -> list[Raw]:
    """Read the rows that have an answer; all, if there is no file of answers. What is no id is noted as a defect."""
    answers = _egoschema_answers(path)
    rows = egoschema_rows(path)
    ids = [raw.get("q_uid") for _, raw in rows]
    may_be_in = [not answers or not isinstance(each, str | int) or str(each) in answers for each in ids]
    return [row for row, is_kept in zip(rows, may_be_in, strict=True) if is_kept]


def _held(row: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: value for name, value in row.items() if name != "truth" or value is not None}


def _egoschema_answers(path: Path) -> Mapping[str, Any]:
    beside = path.with_name(EGOSCHEMA_ANSWERS)
    answers = json_file(beside) if beside.is_file() else {}
    if not isinstance(answers, dict):
        raise UsageError(f"{beside} is no object of answers by question; give it as it is published")
    return answers
