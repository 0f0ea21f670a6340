"""Columns of a reading of frames, and the tables that hold them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kinodex.index.errors import QueryError
from kinodex.index.videos.visibility import SpaceScope

FRAMES = "frames"
COLUMNS = ("video_id", "title", "frame_no", "time_s", "width_px", "height_px", "jpeg", "vector")
"""All columns that can be read of a frame; `title` is its video's, and `vector` of one space."""
IN_VECTORS = frozenset({"video_id", "title", "frame_no", "time_s", "vector"})
"""Those for which the table of vectors is enough."""
KEY = ("video_id", "frame_no")
PICTURE = "image"
"""The name of what is decoded of `jpeg`; no column of a table."""


def stored_names(columns: Sequence[str]) -> list[str]:
    """List the columns to read for these, of which pictures may be one, each once."""
    names = (columns,) if isinstance(columns, str) else columns
    return list(dict.fromkeys("jpeg" if name == PICTURE else name for name in names))


@dataclass(frozen=True, slots=True)
class Choice:
    """A choice of columns. Rows are those of the table `base`; vectors are joined to them if they are in another."""

    columns: tuple[str, ...]
    base: str
    vectors: str | None
    """The table of vectors, where they are asked for."""

    @property
    def joins_vectors(self) -> bool:
        """True if vectors come from another table than the rows."""
        return self.vectors is not None and self.vectors != self.base

    @property
    def stored(self) -> list[str]:
        """The columns that are read of the base table, those that identify a row first."""
        others = [name for name in self.columns if name not in (*KEY, "title")]
        return [*KEY, *(name for name in others if name != "vector" or not self.joins_vectors)]


def choose(columns: Sequence[str], scope: SpaceScope) -> Choice:
    """Check the names of columns, and find the table that has the rows; raises QueryError, NoVectors among them."""
    names = (columns,) if isinstance(columns, str) else tuple(columns)
    unknown = [name for name in names if name not in COLUMNS]
    if unknown or not names or len(set(names)) < len(names):
        got = ", ".join(map(str, names)) or "none"
        raise QueryError(f"got columns {got}; give some of {', '.join(COLUMNS)}, each once")
    if "vector" not in names:
        return Choice(names, FRAMES, None)
    return Choice(names, scope.table if IN_VECTORS.issuperset(names) else FRAMES, scope.table)
