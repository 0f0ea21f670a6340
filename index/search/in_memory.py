"""Frames of one video, read once and searched in memory, for many searches of the same video."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinodex.index.errors import QueryError
from kinodex.index.rows import FrameVectors


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
