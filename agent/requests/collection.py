"""Requests of a question to a whole collection: a plan of its table, and an answer in words from the table's rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator

from kinodex.agent.errors import InvalidReply
from kinodex.agent.protocol.notes import Note
from kinodex.agent.protocol.question import Question
from kinodex.agent.protocol.reply import Reasoned, Reply, described
from kinodex.agent.protocol.request import Request
from kinodex.agent.replies.values import NOTHING, Numbers
from kinodex.agent.requests.refusals import check_not_refused
from kinodex.agent.requests.repetition import check_not_looping

FOUND = "found"
"""The name of the table of rows in a plan's SQL."""
KINDS = {"text": "string", "whole number": "integer", "number": "number", "yes or no": "boolean"}
"""By the word for the kind of a field its type in a JSON schema."""
MOST_FIELDS = 8


class PlannedField(Reply):
    """A column of the table."""

    name: str = Field(description="small letters and _")
    kind: Literal["text", "whole number", "number", "yes or no"] = Field(description="the kind of its values")
    meaning: str = Field(description="what goes in there, in a few words")


class CollectionPlan(Reasoned):
    """The way from a question to a table of rows, and from the rows to the answer."""

    model_config = described("How a question about many films is answered by a table.")

    search: str = Field(description="six to twelve words that the frames or the lines of it would match")
    row: str = Field(description="in one sentence, the thing that makes a row")
    fields: list[PlannedField] = Field(min_length=1, max_length=MOST_FIELDS, description="the columns")
    each: Literal["video", "scene", "moments"] = Field(description="the parts of a film that are looked at")
    condition: str | None = Field(description="SQL on the columns that holds for the rows that count, else null")
    select: str | None = Field(description="one SELECT from the table found, or null for an answer in words")

    @field_validator("condition", "select")
    @classmethod
    def _null_if_none(cls, value: str | None) -> str | None:
        return None if value is None or value.strip().casefold() in NOTHING else value.strip().rstrip(";")

    @property
    def schema_of_rows(self) -> dict[str, Any]:
        """The JSON schema of an extract with a row for each: several a part, or none; values may be null."""
        columns = {
            each.name.lower(): {"anyOf": [{"type": KINDS[each.kind]}, {"type": "null"}], "description": each.meaning}
            for each in self.fields
        }
        row = {"title": "Row", "description": self.row, "type": "object", "properties": columns}
        return {"type": "array", "items": row}


@dataclass(frozen=True, kw_only=True)
class PlanCollection(Request[CollectionPlan]):
    """Plan the table that answers a question about `films` films; `columns`, with their types, are known of each."""

    Reply = CollectionPlan
    template: ClassVar[str] = "plan_collection"
    role: ClassVar[str] = "policy"
    temperature: ClassVar[float] = 0.0
    tried: ClassVar[Callable[[CollectionPlan], None]] = staticmethod(lambda plan: None)
    """Tries a plan on an empty table; raises InvalidReply for one that cannot be carried out."""
    question: Question
    films: int
    typical_s: float
    """The length of a film: half of them are shorter."""
    columns: tuple[str, ...]

    @classmethod
    def tried_by(cls, tried: Callable[[CollectionPlan], None]) -> type[PlanCollection]:
        """Return the request whose replies are tried so."""
        return type("PlanCollection", (cls,), {"tried": staticmethod(tried), "__module__": __name__})

    def check(self, reply: CollectionPlan) -> None:
        if not reply.search.strip() or not reply.row.strip():
            raise InvalidReply("the search or the row is empty; give words to look for, and say what makes a row")
        check_not_refused(reply.row)
        check_not_looping(reply.row)
        type(self).tried(reply)


class CollectionSaid(Reasoned):
    """An answer from rows."""

    model_config = described("An answer from the rows of a table.")

    said: str = Field(description="one to four sentences, with numbers and the films' names where they are asked for")
    evidence: Numbers = Field(description="numbers of the rows that it rests on")


@dataclass(frozen=True, kw_only=True)
class AnswerFromRows(Request[CollectionSaid]):
    """Answer a question about a collection by the rows that were found: `notes` that begin with a film's name."""

    Reply = CollectionSaid
    template: ClassVar[str] = "answer_from_rows"
    role: ClassVar[str] = "policy"
    temperature: ClassVar[float] = 0.0
    question: Question
    notes: tuple[Note, ...]
    looked_at: int
    """Films that were looked at; those without a row show nothing of it."""

    def check(self, reply: CollectionSaid) -> None:
        if not reply.said.strip():
            raise InvalidReply("the answer is empty; say in a sentence what the rows show, or that they do not show it")
        unknown = [number for number in reply.evidence if not 1 <= number <= len(self.notes)]
        if unknown:
            raise InvalidReply(f"there is no row {unknown[0]}; the rows are 1 to {len(self.notes)}")
        check_not_refused(reply.said)
        check_not_looping(reply.said)
