"""Answers that a notebook shows with the pictures of their evidence."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from kinodex.agent.answer import Answer
from kinodex.jobs.collection.answer import CollectionAnswer

if TYPE_CHECKING:
    from kinodex.index.library import LibraryReader


@dataclass(frozen=True, slots=True)
class ShownAnswer(Answer):
    """The answer to a question about a library."""

    library: LibraryReader | None = field(default=None, compare=False, repr=False)

    def _repr_html_(self) -> str:
        return _html(self, self.library)


@dataclass(frozen=True, slots=True)
class ShownCollection(CollectionAnswer):
    """The answer of a whole collection."""

    library: LibraryReader | None = field(default=None, compare=False, repr=False)

    def _repr_html_(self) -> str:
        return _html(self, self.library)


def shown(answer: Answer, library: LibraryReader) -> Any:
    """Return an answer together with its library, which has the pictures."""
    kind = ShownCollection if isinstance(answer, CollectionAnswer) else ShownAnswer
    return kind(**{each.name: getattr(answer, each.name) for each in fields(answer)}, library=library)


def _html(answer: Answer, library: LibraryReader | None) -> str:
    from kinodex.notebook import answer_html

    assert library is not None
    return answer_html(answer, library)
