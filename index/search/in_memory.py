"""Frames of one video, or rows of a table of vectors, read once and searched in memory, for many searches of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinodex.index.rows import FrameVectors
from kinodex.index.search.held_rows import cosines_of, top_positions, unit_query, unit_vectors


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
        return cls(stored, unit_vectors(stored.vectors))

    def cosines(self, vector: NDArray[np.float32]) -> NDArray[np.float32]:
        """Compare every frame `[n]` with a query vector `[dim]` by cosine; raises QueryError for a vector of zeros."""
        return cosines_of(self.units, unit_query(vector, self.units.shape[1]))

    def search(self, vector: NDArray[np.float32], k: int, min_gap_s: float = 0.0) -> list[Near]:
        """Find the `k` nearest frames, best first, no two closer than `min_gap_s`: the same as `Search.frames`."""
        cosines = self.cosines(vector)
        best = top_positions(cosines, self.stored.time_s, k, min_gap_s)
        columns = self.stored.frame_no[best], self.stored.time_s[best], cosines[best]
        return [Near(*row) for row in zip(best.tolist(), *(column.tolist() for column in columns), strict=True)]
