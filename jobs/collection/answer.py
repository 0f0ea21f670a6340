"""An answer from a whole collection: in words, and the same as data."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from kinodex.agent.answer import Answer
from kinodex.agent.evidence import Evidence
from kinodex.agent.requests.collection import CollectionPlan
from kinodex.index.durations import counted


@dataclass(frozen=True, slots=True)
class FilmFound:
    """A film with rows that count: how many, and the moments that show them."""

    video_id: str
    title: str
    times: int
    moments: tuple[Evidence, ...]


@dataclass(frozen=True, slots=True)
class NotLooked:
    """Films that were not looked at, and why; without a number of films, what of each was not."""

    why: str
    films: int | None = None

    def __str__(self) -> str:
        return self.why if self.films is None else f"{counted(self.films, 'film')} {self.why}"


@dataclass(frozen=True, slots=True)
class CollectionAnswer(Answer):
    """An answer from a whole collection: its `text` has all in words, the rest the same as data.

    `columns` and `rows` are the result of the plan's SELECT; `extract` the table that holds all rows.
    """

    plan: CollectionPlan | None = None
    plan_from: str = ""
    """"model", "library" (of the same question before), "file", or "default" where the model gave none."""
    extract: str = ""
    looked_at: int = 0
    films: tuple[FilmFound, ...] = ()
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()
    not_looked_at: tuple[NotLooked, ...] = ()

    @property
    def as_answer(self) -> Answer:
        """The same as answers of agents are."""
        return Answer(**{each.name: getattr(self, each.name) for each in fields(Answer)})
