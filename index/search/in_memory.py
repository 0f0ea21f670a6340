"""Frames of one video, or of those of a condition, read once and searched in memory, for many searches of the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kinodex.index.errors import QueryError
from kinodex.index.rows import FrameVectors
from kinodex.index.store.database import State, Tables
from kinodex.index.store.schema import chunked, one_of
from kinodex.index.videos.visibility import check_vectors


class Near(NamedTuple):
    """A frame near to a query: its position in the video's `FrameVectors`, and the cosine."""

    at: int
    frame_no: int
    time_s: float
    cosine: float


@dataclass(frozen=True, slots=True)
class InMemory:
    """The frames of one video in time order; `units` are their vectors as float32 `[n, dim]` of unit length."""

    stored: FrameVectors
    units: NDArray[np.float32]

    @classmethod
    def of(cls, stored: FrameVectors) -> InMemory:
        """Convert stored vectors to float32 of unit length."""
        wide = stored.vectors.astype(np.float32)
        return cls(stored, wide / np.linalg.norm(wide, axis=1, keepdims=True))

    def cosines(self, vector: NDArray[np.float32]) -> NDArray[np.float32]:
        """Compare every frame `[n]` with a query vector `[dim]` by cosine; raises QueryError for a vector of zeros.

        Equal frames have equal cosines to the last bit, which a product by BLAS does not promise.
        """
        query = unit_query(vector, self.units.shape[1])
        found: NDArray[np.float32] = np.einsum("ij,j->i", self.units, query / np.linalg.norm(query))
        return found

    def search(self, vector: NDArray[np.float32], k: int, min_gap_s: float = 0.0) -> list[Near]:
        """Find the `k` nearest frames, best first, no two closer than `min_gap_s`: the same as `Search.frames`."""
        cosines = self.cosines(vector)
        best = top_positions(cosines, self.stored.time_s, k, min_gap_s)
        columns = self.stored.frame_no[best], self.stored.time_s[best], cosines[best]
        return [Near(*row) for row in zip(best.tolist(), *(column.tolist() for column in columns), strict=True)]


# Frames of the videos of a condition. A filter costs Lance's index some milliseconds for each million frames that it
# leaves out, many times what a search of all takes; of so many videos that reading their vectors for each search takes
# as long, these are kept.

HELD_BYTES = 256 << 20
"""Of vectors as float32: more are not kept."""
HELD_CONDITIONS = 2
"""Sets of videos whose frames are kept for one open library."""


@dataclass(frozen=True, slots=True)
class HeldFrames:
    """Frames of some videos, as their table has them, with vectors as float32 `[n, dim]` of unit length."""

    video_ids: NDArray[np.object_]
    frame_no: NDArray[np.int32]
    time_s: NDArray[np.float64]
    units: NDArray[np.float32]

    def nearest(self, query: NDArray[np.float32], k: int) -> list[dict[str, Any]]:
        """The `k` rows nearest to a query by cosine, nearest first, with `_distance` = 1 - cosine."""
        cosines = self.units @ (query / np.linalg.norm(query))
        best = np.argpartition(-cosines, k - 1)[:k] if k < len(cosines) else np.arange(len(cosines))
        best = best[np.argsort(-cosines[best], kind="stable")]
        columns = self.video_ids[best], self.frame_no[best], self.time_s[best], 1.0 - cosines[best]
        names = ("video_id", "frame_no", "time_s", "_distance")
        return [dict(zip(names, row, strict=True)) for row in zip(*(each.tolist() for each in columns), strict=True)]


_HELD: WeakKeyDictionary[Tables, dict[tuple[str, State, frozenset[str]], HeldFrames | None]] = WeakKeyDictionary()


def held_frames(tables: Tables, name: str, video_ids: frozenset[str]) -> HeldFrames | None:
    """The frames of these videos in a table of vectors, read unless they are kept; None for too many of them."""
    kept = _HELD.setdefault(tables, {})
    key = name, tables.state(name), video_ids
    if key not in kept:
        for outdated in [each for each in kept if each[:2] != key[:2]] or list(kept)[: len(kept) - HELD_CONDITIONS + 1]:
            del kept[outdated]
        kept[key] = _read_held(tables, name, sorted(video_ids))
    return kept[key]


def _read_held(tables: Tables, name: str, video_ids: Sequence[str]) -> HeldFrames | None:
    dim = tables.schema(name).field("vector").type.list_size
    parts, left = [], HELD_BYTES // (4 * dim)
    for some in chunked(video_ids):
        where = one_of("video_id", some)
        left -= tables.count(name, where)
        if left < 0:
            return None
        parts.append(tables.rows(name, where, ["video_id", "frame_no", "time_s", "vector"]))
    rows = pa.concat_tables(parts)
    check_vectors(rows, tables.uri)
    units = rows["vector"].combine_chunks().flatten().to_numpy().reshape(-1, dim).astype(np.float32)
    units /= np.linalg.norm(units, axis=1, keepdims=True)
    ids = np.array(rows["video_id"].to_pylist(), object)
    return HeldFrames(ids, rows["frame_no"].to_numpy(), rows["time_s"].to_numpy(), units)


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
