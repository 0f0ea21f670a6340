"""Places where two videos may run side by side: the diagonals of their similarities that many frames vote for.

A Hough transform: each frame votes, with the frames of the other video that it resembles most, for the offset between
their times, once for each speed. Only what differs from the other video's mean counts, so that a fixed camera's
picture votes by what moves in it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinodex.jobs.duplicates.timelines import Timeline

SPEEDS = (1.0, 25 / 24, 24 / 25)
"""Films are played at 25 instead of 24 frames a second by European television."""
SPEED_FRAMES = 48
"""In fewer frames than these the speeds are less than two frames apart, and 1 is taken."""
BLOCK_ROWS = 256
BEST_EACH, BEST_ALL = 4, 10
NEAREST = 3
LEAST_LEAD = 0.2
"""A vote counts by how far its similarity exceeds that of the mean frame, beyond this."""


class Diagonal(NamedTuple):
    """A time t of the first video is `speed * t + offset_s` of the second; `votes` is the weight behind it."""

    speed: float
    offset_s: float
    votes: float


class Known(NamedTuple):
    """Frames of two videos of which it is known where they run side by side, `[n]` and `[m]`."""

    a: NDArray[np.bool_]
    b: NDArray[np.bool_]


def find_diagonals(a: Timeline, b: Timeline, known: Known | None = None) -> list[Diagonal]:
    """Find the diagonals with the most votes, best first, at most `BEST_ALL`, without the votes of `known` frames."""
    back = None if known is None else Known(known.b, known.a)
    both = zip(_votes(a, b, known), _votes(b, a, back)[[1, 0, 2]], strict=True)
    at_a, at_b, weights = (np.concatenate(each) for each in both)
    at_a, at_b = at_a.astype(np.intp), at_b.astype(np.intp)
    width_s = max(a.gap_s, b.gap_s) / 2
    found = []
    lasting = min(a.times_s[-1] - a.times_s[0], b.times_s[-1] - b.times_s[0]) >= SPEED_FRAMES * max(a.gap_s, b.gap_s)
    for speed in SPEEDS if lasting else SPEEDS[:1]:
        offsets_s = b.times_s[at_b] - speed * a.times_s[at_a]
        first_s = offsets_s.min()
        bins = np.round((offsets_s - first_s) / width_s).astype(np.intp)
        heights = np.convolve(np.bincount(bins, weights=weights), [0.5, 1.0, 0.5], "same")
        best = np.argsort(-heights, kind="stable")[:BEST_EACH]
        found += [Diagonal(speed, float(first_s + place * width_s), float(heights[place])) for place in best]
    return sorted(found, key=lambda each: -each.votes)[:BEST_ALL]


def _votes(a: Timeline, b: Timeline, known: Known | None) -> NDArray[np.float64]:
    """Votes of the frames of `a`: rows of frames of a, frames of b, and weights, `[3, votes]`."""
    centre = b.units.mean(axis=0)
    ours, theirs = _towards(a.units - centre), _towards(b.units - centre)
    nearest = min(NEAREST, len(theirs))
    parts = []
    for first in range(0, len(ours), BLOCK_ROWS):
        cosines = ours[first : first + BLOCK_ROWS] @ theirs.T
        usual = cosines.mean(axis=1, keepdims=True)
        if known is not None:
            cosines[np.ix_(known.a[first : first + BLOCK_ROWS], known.b)] = -1.0
        best = np.argpartition(-cosines, nearest - 1, axis=1)[:, :nearest]
        lead = np.take_along_axis(cosines, best, axis=1) - usual - LEAST_LEAD
        rows = np.repeat(np.arange(first, first + len(cosines)), nearest)
        parts.append(np.stack([rows, best.ravel(), np.maximum(lead, 0.0).ravel()]))
    votes: NDArray[np.float64] = np.concatenate(parts, axis=1)
    return votes


def _towards(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    directions: NDArray[np.float32] = vectors / (np.linalg.norm(vectors, axis=1, keepdims=True) + 1e-6)
    return directions
