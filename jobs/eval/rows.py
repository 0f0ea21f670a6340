"""Rows of annotation files, and how they become items.

A defect of a row is noted, not raised.
"""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from kinodex.agent.errors import BadQuestion
from kinodex.agent.protocol.question import MAX_OPTIONS, Question
from kinodex.jobs.eval.items import AnyItem, BadRow, HasId, Problem

AS_PUBLISHED = ConfigDict(frozen=True, coerce_numbers_to_str=True, allow_inf_nan=False)
AddNote = Callable[[str], None]
"""Notes a defect of a row that is kept all the same."""
Raw = tuple[str, Any]
"""The place of a row, and its content: an object of JSON or CSV, or a `BadRow`."""


class Row(BaseModel):
    """A row of an annotation file: fields beyond the named ones are ignored, and an id may be a number."""

    model_config = AS_PUBLISHED


ItemOf = TypeVar("ItemOf", bound=HasId, covariant=True)


class RowOf(Protocol[ItemOf]):
    """A class of rows, made of pydantic, that become items of one kind."""

    @classmethod
    def model_validate(cls, obj: Any) -> Self: ...

    def item(self, note: AddNote) -> ItemOf:
        """Make the item of this row; raise `BadRow` if there can be none."""
        ...


def parse_rows(rows: Iterable[Raw], shape: type[RowOf[AnyItem]]) -> tuple[tuple[AnyItem, ...], tuple[Problem, ...]]:
    """Parse rows of the published shape into items, the first of each id, and note the problems of the others."""
    items: dict[str, AnyItem] = {}
    problems: list[Problem] = []
    for where, raw in rows:

        def note(what: str, where: str = where) -> None:
            problems.append(Problem(where, what))

        try:
            if isinstance(raw, BadRow):
                raise raw
            item = shape.model_validate(raw).item(note)
        except ValidationError as error:
            note("; ".join(map(_defect, error.errors())))
        except (BadRow, BadQuestion) as error:
            note(str(error))
        else:
            if item.item_id in items:
                note(f"the id {item.item_id} is there already; the first row of it counts")
            items.setdefault(item.item_id, item)
    return tuple(items.values()), tuple(problems)


def _defect(error: ErrorDetails) -> str:
    """Describe the error of a field in one line: its name, the defect, and the value."""
    field, kind = ".".join(map(str, error["loc"])) or "row", error["type"]
    says = "Input should be an object with fields" if kind == "model_type" else error["msg"]
    return f"{field}: {says}" + ("" if kind == "missing" else f", got {str(error['input'])[:60]!r}")


def make_question(text: str, options: Iterable[str], note: AddNote) -> Question:
    """Make the question that agents get. Options of equal text, which some published rows have, get their letters."""
    options = [option.strip() for option in options]
    often = Counter(option.casefold() for option in options)
    repeated = [often[option.casefold()] > 1 for option in options]
    if not any(repeated) or len(options) > MAX_OPTIONS:
        return Question(text.strip(), tuple(options))
    letters = string.ascii_uppercase[: len(options)]
    same = " and ".join(letter for letter, again in zip(letters, repeated, strict=True) if again)
    note(f"options {same} have the same text; the question is kept, and their letters are added to them")
    told_apart = zip(letters, options, repeated, strict=True)
    return Question(
        text.strip(),
        tuple(f"{each} (option {letter})" if again and each else each for letter, each, again in told_apart),
    )


def lettered_answer(field: str, letter: str, options: Sequence[str], what: str = "options") -> int:
    """Return the number, from 0, of the option that a capital letter names; raise `BadRow` if there is none."""
    answer = string.ascii_uppercase.index(letter)
    if answer >= len(options):
        raise BadRow(f"{field}: got {letter}; there are {len(options)} {what}")
    return answer


def is_there(picture: Path) -> bool:
    """Return True if the file of a picture is there; False too for a name that no file can have."""
    try:
        return picture.is_file()
    except (OSError, ValueError):  # too long, half a character
        return False


def check_range(field: str, start_s: float, end_s: float) -> tuple[float, float]:
    """Return the range; raise `BadRow` with the field's name unless it begins at 0 or later, and ends after that."""
    if not 0 <= start_s < end_s:
        raise BadRow(f"{field}: got {start_s:g} to {end_s:g}; it is a start from 0 on and a later end in seconds")
    return start_s, end_s


def make_groups(**categories: str | None) -> dict[str, tuple[str, ...]]:
    """Return a category of each breakdown, without those that a row does not have."""
    return {breakdown: (name,) for breakdown, name in categories.items() if name}
