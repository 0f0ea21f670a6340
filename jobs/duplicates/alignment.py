"""Two videos laid side by side: where their frames are alike, and whether they change alike there.

Frames that are alike prove nothing: two recordings of one fixed camera are. So the vectors' changes about their mean
over the shared part are correlated (normalised cross-correlation, a sum over all numbers of the vectors). Where nothing
changes, as in a still, a black picture or a title card, there is nothing to correlate, and no alignment.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jobs.duplicates.diagonals import Diagonal, find_diagonals
from jobs.duplicates.timeline import Timeline

ALIKE = 0.55
"""Least cosine of frames that may show the same; of all thresholds here: measured, docs/measured.md."""
PART_AGREEMENT, WHOLE_AGREEMENT = 0.75, 0.35
"""Least agreement of changes where a part of the shorter video is shared, 60 % or less, and where all of it is."""
LEAST_FRAMES, LEAST_CHANGES = 5, 2
STEADY = 0.95
"""Cosine of two neighbouring frames below which the picture changes."""
LEAST_VARIANCE = 0.01
RUN_FRAMES, CLOSED_FRAMES = 3, 2
FINE_STEPS = np.arange(-4, 5) / 4
SPEED_PRICE = 0.97
"""Another speed than 1 must explain so much more."""


@dataclass(frozen=True, slots=True)
class SharedRange:
    """A stretch in both videos, presentation times in seconds."""

    start_a_s: float
    end_a_s: float
    start_b_s: float
    end_b_s: float

    @property
    def length_s(self) -> float:
        """Length in the first video."""
        return self.end_a_s - self.start_a_s


@dataclass(frozen=True, slots=True)
class Alignment:
    """A time t of the first video is `speed * t + offset_s` of the second, in the `ranges`.

    `agreement` is the correlation of the changes, -1 to 1, `likeness` the mean cosine of the frames, `frames` the
    number of them, `share` their share of the shorter video's, and `changes` how often the picture changes there.
    """

    speed: float
    offset_s: float
    ranges: tuple[SharedRange, ...]
    agreement: float
    likeness: float
    frames: int
    share: float
    changes: int
    variance: float

    @property
    def is_same(self) -> bool:
        """True if the two videos show the same there, by the thresholds of this module."""
        enough = self.frames >= LEAST_FRAMES and self.changes >= LEAST_CHANGES and self.variance >= LEAST_VARIANCE
        return enough and self.agreement >= min(PART_AGREEMENT, WHOLE_AGREEMENT + 1 - self.share)


def align(a: Timeline, b: Timeline) -> Alignment | None:
    """Find the alignment of two videos that explains most, None if no stretch of them is alike.

    Costs O(n m dim) for n and m frames, in one product of matrices by blocks.
    """
    found = [each for each in (_along(a, b, diagonal) for diagonal in find_diagonals(a, b)) if each is not None]
    return max(found, key=_explained, default=None)


def _explained(alignment: Alignment) -> float:
    return alignment.frames * max(alignment.agreement, 0.0) * (1.0 if alignment.speed == 1.0 else SPEED_PRICE)


def _along(a: Timeline, b: Timeline, diagonal: Diagonal) -> Alignment | None:
    """Measure the alignment along one diagonal, its offset moved by at most a frame to where the changes agree most."""
    cosines = _cosines(a, b, diagonal)
    runs = _runs(cosines >= ALIKE)
    if not runs:
        return None
    places = np.concatenate([np.arange(first, last + 1) for first, last in runs])
    ours, times_s = a.units[places], diagonal.speed * a.times_s[places] + diagonal.offset_s
    gap_s = max(a.gap_s, b.gap_s)
    tried = [(*_agreement(ours, b.at(times_s + step * gap_s)), -abs(step), step) for step in FINE_STEPS]
    agreement, variance, _, step = max(tried)
    offset_s = diagonal.offset_s + float(step) * gap_s
    steady = np.einsum("ij,ij->i", ours[1:], ours[:-1])
    return Alignment(
        speed=diagonal.speed,
        offset_s=offset_s,
        ranges=tuple(_range(a, b, diagonal.speed, offset_s, first, last) for first, last in runs),
        agreement=agreement,
        likeness=float(cosines[places].mean()),
        frames=len(places),
        share=min(1.0, len(places) / min(len(a.times_s), len(b.times_s))),
        changes=int((steady < STEADY).sum()),
        variance=variance,
    )


def _cosines(a: Timeline, b: Timeline, diagonal: Diagonal) -> NDArray[np.float32]:
    """Cosine of each frame of `a` with the frame before or after it on the diagonal, -1 outside of `b`."""
    times_s = diagonal.speed * a.times_s + diagonal.offset_s
    gap_s = max(a.gap_s, b.gap_s)
    inside = (times_s >= b.times_s[0] - gap_s / 2) & (times_s <= b.times_s[-1] + gap_s / 2)
    after = np.clip(np.searchsorted(b.times_s, times_s), 1, max(len(b.times_s) - 1, 1))
    best = np.full(len(a.times_s), -1.0, np.float32)
    for place in (after - 1, np.minimum(after, len(b.times_s) - 1)):
        near = inside & (np.abs(b.times_s[place] - times_s) <= gap_s)
        cosines = np.einsum("ij,ij->i", a.units, b.units[place])
        best = np.where(near, np.maximum(best, cosines), best)
    return best


def _runs(alike: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """First and last places of stretches of `RUN_FRAMES` or more, over gaps of `CLOSED_FRAMES` at most."""
    places = np.flatnonzero(alike)
    if not len(places):
        return []
    stretches = np.split(places, np.flatnonzero(np.diff(places) > CLOSED_FRAMES + 1) + 1)
    return [(int(each[0]), int(each[-1])) for each in stretches if len(each) >= RUN_FRAMES]


def _agreement(ours: NDArray[np.float32], theirs: NDArray[np.float32]) -> tuple[float, float]:
    """Correlation of the changes of two rows of vectors `[n, dim]`, and the smaller mean square of the changes."""
    one, other = ours - ours.mean(axis=0), theirs - theirs.mean(axis=0)
    squares = float((one * one).sum()), float((other * other).sum())
    return float((one * other).sum() / np.sqrt(squares[0] * squares[1] + 1e-9)), min(squares) / len(ours)


def _range(a: Timeline, b: Timeline, speed: float, offset_s: float, first: int, last: int) -> SharedRange:
    """The stretch from one frame to the end of another, cut to where the second video has frames."""
    begin, end = float(b.times_s[0]), float(b.times_s[-1]) + b.gap_s
    start_b_s = min(max(speed * float(a.times_s[first]) + offset_s, begin), end)
    end_b_s = max(min(speed * (float(a.times_s[last]) + a.gap_s) + offset_s, end), start_b_s)
    return SharedRange((start_b_s - offset_s) / speed, (end_b_s - offset_s) / speed, start_b_s, end_b_s)
