"""Two videos laid side by side: where their frames are alike, and whether they change alike there.

Frames that are alike prove nothing: two recordings of one fixed camera are. So the vectors' changes about their mean
over the shared part are correlated (normalised cross-correlation, a sum over all numbers of the vectors). Where
nothing changes, as in a still, a black picture or a title card, there is nothing to correlate, and no alignment.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kinodex.jobs.duplicates.diagonals import SPEED_FRAMES, SPEEDS, Diagonal, Known, find_diagonals
from kinodex.jobs.duplicates.timelines import Timeline

ALIKE = 0.55
"""Least cosine of frames that may show the same; of all thresholds here: chosen on the films of docs/measured.md."""
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
MOST_PARTS = 32
"""A film that was cut and put together again has this many parts at most that are looked for."""
DRIFT_STEPS = np.arange(-16, 17) / 2
DRIFT_ROUNDS = 6
SPEED_LIMITS = (0.5, 2.0)


@dataclass(frozen=True, slots=True)
class DuplicateRange:
    """A stretch that two videos share, in seconds: a time t of the first is `speed * t + offset_s` of the second."""

    start_a_s: float
    end_a_s: float
    start_b_s: float
    end_b_s: float
    offset_s: float
    speed: float


@dataclass(frozen=True, slots=True)
class Alignment:
    """A time t of the first video is `speed * t + offset_s` of the second, in the `ranges`.

    `agreement` is the correlation of the changes, -1 to 1, `likeness` the mean cosine of the frames, `share` their
    share of the shorter video's, and `changes` how often the picture changes there.
    """

    speed: float
    offset_s: float
    ranges: tuple[DuplicateRange, ...]
    agreement: float
    likeness: float
    frames: int
    share: float
    changes: int
    variance: float

    @property
    def length_s(self) -> float:
        """Length of the ranges in the first video."""
        return sum(each.end_a_s - each.start_a_s for each in self.ranges)

    @property
    def is_same(self) -> bool:
        """True if the two videos show the same there, by the thresholds of this module."""
        enough = self.frames >= LEAST_FRAMES and self.changes >= LEAST_CHANGES and self.variance >= LEAST_VARIANCE
        return enough and self.agreement >= min(PART_AGREEMENT, WHOLE_AGREEMENT + 1 - self.share)


def align(a: Timeline, b: Timeline, known: Known | None = None, speeds: Sequence[float] = SPEEDS) -> Alignment | None:
    """Find the alignment of two videos that explains most, None if no stretch of them is alike.

    Frames that are both `known` are left out. Of one speed alone none between is tried.
    """
    tried = (_along(a, b, diagonal, known) for diagonal in find_diagonals(a, b, known) if diagonal.speed in speeds)
    best = max((each for each in tried if each is not None), key=_explained, default=None)
    if best is None or not best.is_same or len(speeds) == 1:
        return best
    return _without_drift(a, b, best, known)


def shared_parts(a: Timeline, b: Timeline, least_s: float) -> list[Alignment]:
    """Find the alignments by which two videos show the same, what explains most first; one for most copies.

    Parts around a cut, and places of a film that is there twice, have an offset each. All but the first last `least_s`.
    """
    found = _parts(a, b, least_s, SPEEDS)
    if found and found[0].speed != 1.0:  # a short piece that was cut out looks like another speed
        steady = _parts(a, b, least_s, SPEEDS[:1])
        if _explained_by_all(steady) >= _explained_by_all(found):
            return steady
    return found


def _parts(a: Timeline, b: Timeline, least_s: float, speeds: Sequence[float]) -> list[Alignment]:
    known = Known(np.zeros(len(a.times_s), np.bool_), np.zeros(len(b.times_s), np.bool_))
    found: list[Alignment] = []
    while len(found) < MOST_PARTS and not (known.a.all() and known.b.all()):
        part = align(a, b, known if found else None, speeds)
        if part is None or not part.is_same or (found and part.length_s < least_s):
            break
        found.append(part)
        for each in part.ranges:
            known.a[_inside(a, each.start_a_s, each.end_a_s)] = True
            known.b[_inside(b, each.start_b_s, each.end_b_s)] = True
    return found


def _inside(video: Timeline, start_s: float, end_s: float) -> NDArray[np.bool_]:
    """Return the frames from one time on to those that end at another."""
    half_s = video.gap_s / 2
    inside: NDArray[np.bool_] = (video.times_s >= start_s - half_s) & (video.times_s <= end_s - half_s)
    return inside


def covered_s(spans_s: Iterable[tuple[float, float]]) -> float:
    """Time that some spans cover together."""
    total_s, until_s = 0.0, -math.inf
    for start_s, end_s in sorted(spans_s):
        total_s += max(end_s - max(start_s, until_s), 0.0)
        until_s = max(until_s, end_s)
    return total_s


def _explained_by_all(parts: Sequence[Alignment]) -> float:
    """Time that some parts explain together; each beyond the first has its price, and so has another speed."""
    spans_s = [(each.start_a_s, each.end_a_s) for part in parts for each in part.ranges]
    agreement = sum(part.agreement * part.frames for part in parts) / max(sum(part.frames for part in parts), 1)
    prices = max(len(parts) - 1, 0) + any(part.speed != 1.0 for part in parts)
    return covered_s(spans_s) * agreement * SPEED_PRICE**prices


def _without_drift(a: Timeline, b: Timeline, found: Alignment, known: Known | None) -> Alignment:
    """Correct the speed of an alignment whose offset moves along it, as long as more is explained by that."""
    for _ in range(DRIFT_ROUNDS):
        drift = _drift(a, b, found)
        if abs(drift) * (found.ranges[-1].end_a_s - found.ranges[0].start_a_s) < max(a.gap_s, b.gap_s):
            break
        middle_s = (found.ranges[0].start_a_s + found.ranges[-1].end_a_s) / 2
        speed = float(np.clip(found.speed + drift, *SPEED_LIMITS))
        again = _along(a, b, Diagonal(speed, found.offset_s + (found.speed - speed) * middle_s, 0.0), known)
        if again is None or _explained(again) <= _explained(found):
            break
        found = again
    return found


def _drift(a: Timeline, b: Timeline, found: Alignment) -> float:
    """Seconds by which the offset grows in each second of `a`, by the best offsets of its first and last third.

    0 of a short alignment, and where the middle third is not between them: a cut moves the offset at once.
    """
    inside = np.zeros(len(a.times_s), np.bool_)
    for each in found.ranges:
        inside |= _inside(a, each.start_a_s, each.end_a_s)
    places = np.flatnonzero(inside)
    if len(places) < SPEED_FRAMES:
        return 0.0
    begin, middle, end = np.array_split(places, 3)
    begin_s, middle_s, end_s = (_best_step(a, b, found, third) for third in (begin, middle, end))
    if abs(middle_s - (begin_s + end_s) / 2) > max(abs(end_s - begin_s) / 4, a.gap_s, b.gap_s):
        return 0.0
    return (end_s - begin_s) / float(a.times_s[end].mean() - a.times_s[begin].mean())


def _best_step(a: Timeline, b: Timeline, found: Alignment, places: NDArray[np.intp]) -> float:
    """Seconds by which the offset is moved to where the changes of some frames agree most; the least of equal moves."""
    gap_s = max(a.gap_s, b.gap_s)
    ours, times_s = a.units[places], found.speed * a.times_s[places] + found.offset_s
    tried = [(_agreement(ours, b.at(times_s + step * gap_s))[0], -abs(step), step) for step in DRIFT_STEPS]
    return float(max(tried)[2]) * gap_s


def _explained(alignment: Alignment) -> float:
    return alignment.frames * max(alignment.agreement, 0.0) * (1.0 if alignment.speed == 1.0 else SPEED_PRICE)


def _along(a: Timeline, b: Timeline, diagonal: Diagonal, known: Known | None) -> Alignment | None:
    """Measure the alignment along one diagonal, its offset moved by at most a frame to where the changes agree most."""
    cosines = _cosines(a, b, diagonal, known)
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


def _cosines(a: Timeline, b: Timeline, diagonal: Diagonal, known: Known | None) -> NDArray[np.float32]:
    """Cosine of each frame of `a` with the frame before or after it on the diagonal, -1 outside of `b` and if known."""
    times_s = diagonal.speed * a.times_s + diagonal.offset_s
    gap_s = max(a.gap_s, b.gap_s)
    inside = (times_s >= b.times_s[0] - gap_s / 2) & (times_s <= b.times_s[-1] + gap_s / 2)
    after = np.clip(np.searchsorted(b.times_s, times_s), 1, max(len(b.times_s) - 1, 1))
    best = np.full(len(a.times_s), -1.0, np.float32)
    for place in (after - 1, np.minimum(after, len(b.times_s) - 1)):
        near = inside & (np.abs(b.times_s[place] - times_s) <= gap_s)
        if known is not None:
            near &= ~(known.a & known.b[place])
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


def _range(a: Timeline, b: Timeline, speed: float, offset_s: float, first: int, last: int) -> DuplicateRange:
    """Return the stretch from one frame to the end of another, cut to where the second video has frames."""
    begin, end = float(b.times_s[0]), float(b.times_s[-1]) + b.gap_s
    start_b_s = min(max(speed * float(a.times_s[first]) + offset_s, begin), end)
    end_b_s = max(min(speed * (float(a.times_s[last]) + a.gap_s) + offset_s, end), start_b_s)
    start_a_s, end_a_s = (start_b_s - offset_s) / speed, (end_b_s - offset_s) / speed
    return DuplicateRange(start_a_s, end_a_s, start_b_s, end_b_s, offset_s, speed)
