"""The request for rows of a table: what a part of a video shows, under a schema of the user's (`row_schema`).

    schema = read_schema({"title": "Goal", "type": "object", "properties": {"scorer": {"type": "string"}}})
    ExtractRows.under(schema)(part=part, frames=frames, notes=notes)

The class that reads a reply is made of the schema. Its own JSON schema is what servers are bound to.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field, create_model

from kinodex.agent.errors import InvalidReply
from kinodex.agent.protocol.frames import ShownFrame, citation_numbers
from kinodex.agent.protocol.notes import Note
from kinodex.agent.protocol.reply import Reply, described, read_alone
from kinodex.agent.protocol.request import Request
from kinodex.agent.protocol.videos import Segment
from kinodex.agent.replies.lengths import numbers_of
from kinodex.agent.replies.schema import NAMED, Bounds, Schema
from kinodex.agent.replies.values import Numbers, whole_number
from kinodex.agent.requests.refusals import check_not_refused
from kinodex.agent.requests.repetition import check_not_looping
from kinodex.agent.requests.row_schema import EVIDENCE, ROWS, SCALARS, RowSchema, read_schema


class Extracted(Reply):
    """A row, with the numbers of what it rests on."""

    model_config = described("What one part of a video shows.")

    evidence: Numbers = Field(description="numbers of the frames and lines that show it")


class ExtractedRows(Reply):
    """The rows of a part: none where it shows no such thing."""

    rows: list[Extracted] = Field(description="one for each, in the order of time; empty if there is none")
    _accept = read_alone(ROWS, list)


def _within_64_bits(value: int) -> int:
    if not -(2**63) <= value < 2**63:
        raise ValueError("a whole number of at most 18 digits is needed")
    return value


def _annotation(name: str, schema: Schema) -> Any:
    kind = schema["type"]
    if kind == "object":
        found: Any = _class(name, schema[NAMED], Reply)
    elif kind == "array":
        limits = Field(min_length=schema.get("minItems"), max_length=schema.get("maxItems"))
        found = Annotated[list[_annotation(name, schema["items"])], limits]  # type: ignore[misc]
    elif "enum" in schema or "const" in schema:
        found = Literal[tuple(schema.get("enum", [schema.get("const")]))]
    else:
        found = SCALARS[kind]
        if kind in ("integer", "number"):
            found = Annotated[found, Field(ge=schema.get("minimum"), le=schema.get("maximum"))]
        if kind == "integer":
            found = Annotated[found, AfterValidator(_within_64_bits), BeforeValidator(whole_number)]
        if kind == "number":
            found = Annotated[found, Field(allow_inf_nan=False)]
    return found | None if schema.get("nullable") else found


def _class(name: str, columns: Mapping[str, Schema], base: type[Reply], description: str = "") -> type[Reply]:
    fields: dict[str, Any] = {
        key: (_annotation(f"{name}_{key}", each), Field(description=each.get("description")))
        for key, each in columns.items()
    }
    last = {EVIDENCE: (Numbers, base.model_fields[EVIDENCE])} if EVIDENCE in base.model_fields else {}
    made = create_model(name, __base__=Reply, **(fields | last))
    made.model_config.update(described(description) if description else {})
    return made


@dataclass(frozen=True, kw_only=True)
class ExtractRows(Request[Reply]):
    """Fill in a row, or several, from some frames of a part of a video and the lines of its time in `notes`."""

    Reply = Extracted
    template: ClassVar[str] = "extract_rows"
    role: ClassVar[str] = "captioner"
    temperature: ClassVar[float] = 0.0
    purpose: ClassVar[str] = ""
    """A sentence about a row."""
    part: Segment
    notes: tuple[Note, ...]
    frames: tuple[ShownFrame, ...] = ()

    @classmethod
    def under(cls, schema: RowSchema) -> type[ExtractRows]:
        """Return the request whose replies fit a schema."""
        return _request_under(schema.as_json())

    def bounds(self) -> Bounds:
        shown = numbers_of(list(chain(*citation_numbers(self.frames, self.notes))))
        return {f"{ROWS}.{EVIDENCE}" if issubclass(self.Reply, ExtractedRows) else EVIDENCE: shown}

    def check(self, reply: Any) -> None:
        """Refuse evidence of which nothing was shown, and texts that are refusals or loops.

        Beside what was shown, numbers of what was not are left out, as those of answers are.
        """
        frames, notes = citation_numbers(self.frames, self.notes)
        known = [*frames, *notes]
        for row in rows_of_reply(reply):
            if row.evidence and not set(row.evidence).intersection(known):
                shown = f"the numbers are 1 to {known[-1]}" if known else "nothing is numbered here, so leave it empty"
                raise InvalidReply(f"the evidence {row.evidence[0]} is no frame and no line; {shown}")
            for text in texts_in(row.model_dump(exclude={EVIDENCE})):
                check_not_refused(text)
                check_not_looping(text)


@cache
def _request_under(text: str) -> type[ExtractRows]:
    schema = read_schema(json.loads(text))
    name = re.sub(r"\W", "", schema.title) or "Row"
    reply = _class(name, schema.columns, Extracted, schema.description)
    if schema.several:
        listed = (list[reply], ExtractedRows.model_fields[ROWS])  # type: ignore[valid-type]
        reply = create_model(f"{name}Rows", __base__=ExtractedRows, rows=listed)
    return type("ExtractRows", (ExtractRows,), {"Reply": reply, "purpose": schema.description, "__module__": __name__})


def rows_of_reply(reply: Any) -> list[Any]:
    return list(reply.rows) if isinstance(reply, ExtractedRows) else [reply]


def texts_in(value: object) -> list[str]:
    """Return all texts within JSON values, in order."""
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return [text for each in inner for text in texts_in(each)]
