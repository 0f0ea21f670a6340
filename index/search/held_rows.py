"""Rows of a table of vectors, kept where that is quicker.

A filter costs Lance's index some milliseconds for each million frames that it leaves out, many times what a search of
all takes; of so many videos that reading their vectors for each search takes as long, these are kept. So are those of
a small table: to plan a scan takes Lance longer than it takes numpy to compare them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kinodex.index.errors import QueryError
from kinodex.index.store.database import State, Tables
from kinodex.index.store.filters import chunked, one_of
from kinodex.index.vector_columns import matrix_of
from kinodex.index.videos.damage import check_vectors

HELD_BYTES = 256 << 20
"""Of vectors as float32: more are not kept."""
HELD_CONDITIONS = 2
"""Sets of videos whose frames are kept for one open library."""


@dataclass(frozen=True, slots=True)
class HeldRows:
    """Rows of a table of vectors; `units` are these as float32 `[n, dim]` of unit length."""

    columns: Mapping[str, NDArray[np.object_]]
    units: NDArray[np.float32]

    def nearest(self, query: NDArray[np.float32], columns: Sequence[str], k: int) -> list[dict[str, Any]]:
        """Return the `k` rows nearest to a query by cosine, nearest first, with `_distance` = 1 - cosine."""
        cosines = cosines_of(self.units, query)
        best = top_positions(cosines, np.empty(0), k, min_gap_s=0.0)
        values = [*(self.columns[name][best].tolist() for name in columns), (1.0 - cosines[best]).tolist()]
        return [dict(zip((*columns, "_distance"), row, strict=True)) for row in zip(*values, strict=True)]


_HELD: WeakKeyDictionary[Tables, dict[tuple[str, State, frozenset[str] | None], HeldRows | None]] = WeakKeyDictionary()


def held_rows(tables: Tables, name: str, video_ids: frozenset[str] | None = None) -> HeldRows | None:
    """Return the rows with a vector of a table, all or those of some videos, read unless they are kept.

    Return None for too many.
    """
    kept = _HELD.setdefault(tables, {})
    key = name, tables.state(name), video_ids
    if key not in kept:
        of_videos = [each for each in kept if each[2] is not None]
        most = HELD_CONDITIONS - (video_ids is not None)
        outdated = [each for each in kept if each[0] == name and each[1] != key[1]]
        for each in {*outdated, *of_videos[: max(len(of_videos) - most, 0)]}:
            del kept[each]
        kept[key] = _read_held(tables, name, video_ids)
    return kept[key]


def _read_held(tables: Tables, name: str, video_ids: frozenset[str] | None) -> HeldRows | None:
    left = HELD_BYTES // (4 * tables.schema(name).field("vector").type.list_size)
    filters = [None] if video_ids is None else [one_of("video_id", some) for some in chunked(sorted(video_ids))]
    parts = []
    for where in filters:
        left -= tables.count(name, where)
        if left < 0:
            return None
        parts.append(tables.rows(name, where))
    rows = pa.concat_tables(parts)
    rows = rows.filter(rows["vector"].is_valid())
    check_vectors(rows, tables.uri)
    columns = {each: np.array(rows[each].to_pylist(), object) for each in rows.column_names if each != "vector"}
    return HeldRows(columns, unit_vectors(matrix_of(rows["vector"])))


def unit_vectors(vectors: NDArray[np.float16]) -> NDArray[np.float32]:
    """Convert vectors `[n, dim]` to float32 of unit length; zeros, of a text of unknown words, stay as they are."""
    wide = vectors.astype(np.float32)
    lengths = np.linalg.norm(wide, axis=1, keepdims=True)
    lengths[lengths == 0] = 1
    units: NDArray[np.float32] = wide / lengths
    return units


def cosines_of(units: NDArray[np.float32], query: NDArray[np.float32]) -> NDArray[np.float32]:
    """Compare unit vectors `[n, dim]` with a query `[dim]`; equal ones have equal cosines to the last bit.

    A product by BLAS does not promise that.
    """
    found: NDArray[np.float32] = np.einsum("ij,j->i", units, query / np.linalg.norm(query))
    return found


def top_positions(
    scores: NDArray[np.floating], times_s: NDArray[np.float64], k: int, min_gap_s: float
) -> NDArray[np.intp]:
    """Find the positions of the `k` best scores, `min_gap_s` apart (temporal NMS); of equal ones the earlier first."""
    if min_gap_s <= 0:
        top = np.arange(len(scores))
        if 0 < k < len(scores):  # all that tie with the last one stay, so that the earliest of them is taken
            top = np.flatnonzero(~(-scores > np.partition(-scores, k - 1)[k - 1]))
        return top[np.argsort(-scores[top], kind="stable")][:k]
    is_free = np.ones(len(scores), dtype=bool)
    chosen: list[int] = []
    for at in np.argsort(-scores, kind="stable").tolist():
        if len(chosen) == k:
            break
        if is_free[at]:
            is_free &= np.abs(times_s - times_s[at]) >= min_gap_s
            chosen.append(at)
    return np.array(chosen, np.intp)


def unit_query(vector: NDArray[Any], dim: int) -> NDArray[np.float32]:
    """Convert a query vector to float32; raises QueryError if it is not a vector of this space."""
    query = np.asarray(vector, np.float32)
    if query.shape != (dim,):
        raise QueryError(f"got a query vector of shape {query.shape}; this library's space has {dim} dimensions")
    if not np.isfinite(query).all() or not query.any():
        raise QueryError("got a query vector of zeros or of numbers that are not finite; embed the query again")
    return query
