"""Columns of a reading of frames, and the tables that hold them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from index.clock import DECIMALS
from index.errors import QueryError

FRAMES = "frames"
COLUMNS = ("video_id", "title", "frame_no", "time_s", "width_px", "height_px", "jpeg", "vector")
"""All columns that can be read of a frame; `title` is its video's, and `vector` of one space."""
IN_VECTORS = frozenset({"video_id", "title", "frame_no", "time_s", "vector"})
"""Those for which the table of vectors is enough."""
KEY = ("video_id", "frame_no")


PICTURE = "image"
"""The name of what is decoded of `jpeg`; no column of a table."""


def on_player_clock(table: pa.Table, zeros_s: Mapping[str, float]) -> pa.Table:
    """Turn stored times into those that a player shows; `zeros_s` has the presentation time of 0:00 where it is not 0.

    The table has the columns `video_id` and, if it is to be turned, `time_s`.
    """
    if not zeros_s or "time_s" not in table.column_names:
        return table
    names = table["video_id"].combine_chunks().dictionary_encode()
    by_s = np.array([zeros_s.get(name, 0.0) for name in names.dictionary.to_pylist()])[names.indices.to_numpy()]
    stored_s = table["time_s"].to_numpy()
    shown_s = np.where(by_s == 0.0, stored_s, np.round(stored_s - by_s, DECIMALS))
    at = table.column_names.index("time_s")
    return table.set_column(at, table.schema.field(at), pa.array(shown_s))


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


def choose(columns: Sequence[str], vectors_table: str) -> Choice:
    """Check the names of columns, and find the table that has the rows; raises QueryError."""
    names = (columns,) if isinstance(columns, str) else tuple(columns)
    unknown = [name for name in names if name not in COLUMNS]
    if unknown or not names or len(set(names)) < len(names):
        got = ", ".join(map(str, names)) or "none"
        raise QueryError(f"got columns {got}; give some of {', '.join(COLUMNS)}, each once")
    if "vector" not in names:
        return Choice(names, FRAMES, None)
    return Choice(names, vectors_table if IN_VECTORS.issuperset(names) else FRAMES, vectors_table)
