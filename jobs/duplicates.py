"""Near-duplicates: videos that show the same, whole or in part, found by their frame vectors along time."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinodex.index.library import LibraryReader
from kinodex.index.rows import VideoRow
from kinodex.jobs.errors import UsageError

# Places where two videos may run side by side: the diagonals of their table of similarities that many frames vote for.
#
# A Hough transform: each frame votes, with the frames of the other video that it resembles most, for the offset between
# their times, once for each speed. Only what differs from the other video's mean counts, so that a fixed camera's
# picture votes by what moves in it.

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


# Two videos laid side by side: where their frames are alike, and whether they change alike there.
#
# Frames that are alike prove nothing: two recordings of one fixed camera are. So the vectors' changes about their mean
# over the shared part are correlated (normalised cross-correlation, a sum over all numbers of the vectors). Where
# nothing changes, as in a still, a black picture or a title card, there is nothing to correlate, and no alignment.

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
"""A film that was cut and put together again has so many parts at most that are looked for."""
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
    """The frames from one time on to those that end at another."""
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
    """The stretch from one frame to the end of another, cut to where the second video has frames."""
    begin, end = float(b.times_s[0]), float(b.times_s[-1]) + b.gap_s
    start_b_s = min(max(speed * float(a.times_s[first]) + offset_s, begin), end)
    end_b_s = max(min(speed * (float(a.times_s[last]) + a.gap_s) + offset_s, end), start_b_s)
    start_a_s, end_a_s = (start_b_s - offset_s) / speed, (end_b_s - offset_s) / speed
    return DuplicateRange(start_a_s, end_a_s, start_b_s, end_b_s, offset_s, speed)


# Pairs of videos that may share a part: those of which a few frames, spread over one, are near to frames of the other.
#
# Never all pairs are compared. A library of up to `IN_MEMORY_FRAMES` frames is searched in memory, exactly; a larger
# one through its vector index, frame by frame: the cost grows with the number of these frames, not with its square.

IN_MEMORY_FRAMES = 100_000
"""As float32 of 768 numbers these take 300 MB; beyond, searches through the index cost less."""
LEAST_PROBES = 8
PARTNERS = 20
"""Videos that are aligned with one, at most: those that most of its frames are near to."""
NEIGHBOURS = 100
"""Frames asked of the index for each frame, those of its own video among them, in one query."""
PROBE_ROWS = 64

Pair = tuple[str, str]
Done = Callable[[int], None]
"""Gets the number of videos whose frames were searched."""


def probe_places(frames: int, duration_s: float, every_s: float) -> NDArray[np.intp]:
    """Places of the frames of a video that are searched: one each `every_s`, `LEAST_PROBES` or more, evenly spread."""
    count = min(frames, max(LEAST_PROBES, int(np.ceil(duration_s / every_s))))
    places: NDArray[np.intp] = ((np.arange(count) + 0.5) * frames / count).astype(np.intp)
    return places


def pairs_in_memory(
    timelines: Mapping[str, Timeline], every_s: float, chosen: Collection[str], done: Done
) -> list[Pair]:
    """Find candidate pairs among all frames of some videos; one of each pair is among the `chosen`."""
    names = list(timelines)
    units = np.concatenate([timelines[name].units for name in names])
    starts = np.cumsum([0, *(len(timelines[name].units) for name in names)])[:-1]
    wanted = np.array([name in chosen for name in names])
    votes: Counter[Pair] = Counter()
    for number, name in enumerate(names):
        timeline = timelines[name]
        places = probe_places(len(timeline.times_s), float(timeline.times_s[-1] - timeline.times_s[0]), every_s)
        for first in range(0, len(places), PROBE_ROWS):
            cosines = timeline.units[places[first : first + PROBE_ROWS]] @ units.T
            near = np.maximum.reduceat(cosines, starts, axis=1) >= ALIKE
            near[:, number] = False
            if not wanted[number]:
                near &= wanted
            for other in np.flatnonzero(near.any(axis=0)):
                votes[_pair(name, names[other])] += int(near[:, other].sum())
        done(number + 1)
    return best_partners(votes, least=1)


def pairs_by_index(
    library: LibraryReader, chosen: Sequence[str], every_s: float, space: str | None, done: Done
) -> list[Pair]:
    """Find candidate pairs of the chosen videos by searches of the whole library, each for the nearest videos."""
    votes: Counter[Pair] = Counter()
    for number, video_id in enumerate(chosen):
        stored = library.vectors(video_id, space)
        duration_s = float(stored.time_s[-1] - stored.time_s[0])
        for place in probe_places(len(stored.time_s), duration_s, every_s):
            hits = library.search.frames(stored.vectors[place].astype(np.float32), k=NEIGHBOURS, space=space)
            votes.update(_pair(video_id, other) for other in {hit.video_id for hit in hits} - {video_id})
        done(number + 1)
    # The nearest frames are always found, however far they are: one vote says nothing.
    return best_partners(votes, least=2)


def best_partners(votes: Mapping[Pair, int], least: int) -> list[Pair]:
    """Keep the pairs with so many votes that are among the best `PARTNERS` of one of their videos, in a fixed order."""
    of_video: dict[str, list[tuple[int, Pair]]] = defaultdict(list)
    for pair, count in votes.items():
        if count >= least:
            for video in pair:
                of_video[video].append((-count, pair))
    kept: Iterable[Pair] = (pair for each in of_video.values() for _, pair in sorted(each)[:PARTNERS])
    return sorted(set(kept))


def _pair(one: str, other: str) -> Pair:
    return (one, other) if one < other else (other, one)


# Find the near-duplicates of a library: candidate pairs by a few frames of each video, then their alignment.

MIN_S, EVERY_S = 5.0, 30.0
KEPT_TIMELINES = 64
Progress = Callable[[str, int, int], None]
"""Gets what is being done, and how many of how many are done."""


@dataclass(frozen=True, slots=True)
class Duplicate:
    """Two videos that show the same: a time t of `a` is `speed * t + offset_s` of `b`, as a player shows times.

    Where something was cut out, put in or moved, the `ranges`, by time in `a`, have several offsets; those of the pair,
    its `score` (agreement of the changes, up to 1) and its `likeness` (mean cosine, less the library's mean) are of the
    part that explains most. `shared_s` is the time in `a` that the ranges cover, and shares are of each video.
    """

    a: VideoRow
    b: VideoRow
    offset_s: float
    speed: float
    ranges: tuple[DuplicateRange, ...]
    shared_s: float
    share_a: float
    share_b: float
    score: float
    likeness: float


def find_duplicates(
    library: LibraryReader,
    videos: Sequence[str] = (),
    *,
    min_s: float = MIN_S,
    every_s: float = EVERY_S,
    space: str | None = None,
    progress: Progress | None = None,
    in_memory_frames: int = IN_MEMORY_FRAMES,
) -> list[Duplicate]:
    """Find pairs of videos that share `min_s` seconds or more, the longest first; with `videos` those of these ids.

    One frame each `every_s` of a video looks for others, eight or more a video: a shared part in which no such frame of
    either video falls is not found. Raises UsageError for a number that is not more than 0 and for a video without
    frames, SpaceMismatch for one without vectors in the space.
    """
    for name, value in {"least seconds": min_s, "seconds between searched frames": every_s}.items():
        if not value > 0:
            raise UsageError(f"got {value:g} {name}; give more than 0")
    rows = {row.video_id: row for row in library.videos() if row.frames}
    without = next((video_id for video_id in videos if video_id not in rows), None)
    if without is not None:
        title = library.video(without).title
        raise UsageError(f"got {title}, which was imported as text and has no frames to compare; leave it out")
    if len(rows) < 2:
        return []
    tell = progress or (lambda what, done, of: None)
    read, pairs = _candidates(library, rows, set(videos) or set(rows), every_s, space, tell, in_memory_frames)
    found = []
    for number, (one, other) in enumerate(pairs, start=1):
        if parts := shared_parts(read(one), read(other), min_s):
            found.append(_duplicate(rows[one], rows[other], parts))
        tell("aligning pairs", number, len(pairs))
    longest = sorted(found, key=lambda each: (-each.shared_s, each.a.title, each.b.title))
    return [each for each in longest if each.shared_s >= min_s]


def _candidates(
    library: LibraryReader,
    rows: dict[str, VideoRow],
    chosen: set[str],
    every_s: float,
    space: str | None,
    tell: Progress,
    in_memory_frames: int,
) -> tuple[Callable[[str], Timeline], list[Pair]]:
    """A reader of timelines, and the pairs to align."""
    mean = read_mean(library, rows, space)
    searching = "searching frames of videos"
    if sum(row.frames for row in rows.values()) <= in_memory_frames:
        held = {video_id: read_timeline(library, video_id, space, mean) for video_id in sorted(rows)}
        pairs = pairs_in_memory(held, every_s, chosen, lambda number: tell(searching, number, len(held)))
        return held.__getitem__, pairs
    searched = [video_id for video_id in sorted(chosen) if video_id in rows]
    pairs = pairs_by_index(library, searched, every_s, space, lambda number: tell(searching, number, len(searched)))
    return lru_cache(KEPT_TIMELINES)(lambda video_id: read_timeline(library, video_id, space, mean)), pairs


def _duplicate(one: VideoRow, other: VideoRow, parts: Sequence[Alignment]) -> Duplicate:
    """The pair in the order of titles."""
    ranges = [each for part in parts for each in part.ranges]
    main = ranges[0]
    if (other.title, other.video_id) < (one.title, one.video_id):
        one, other = other, one
        ranges, main = [_turned(each) for each in ranges], _turned(main)
    ranges.sort(key=lambda each: (each.start_a_s, each.start_b_s))
    shared_s = covered_s((each.start_a_s, each.end_a_s) for each in ranges)
    return Duplicate(
        one,
        other,
        main.offset_s,
        main.speed,
        tuple(ranges),
        shared_s,
        _share(shared_s, one),
        _share(covered_s((each.start_b_s, each.end_b_s) for each in ranges), other),
        parts[0].agreement,
        parts[0].likeness,
    )


def _turned(each: DuplicateRange) -> DuplicateRange:
    """A range as that of the same pair the other way round."""
    speed, offset_s = 1 / each.speed, -each.offset_s / each.speed
    return DuplicateRange(each.start_b_s, each.end_b_s, each.start_a_s, each.end_a_s, offset_s, speed)


def _share(shared_s: float, row: VideoRow) -> float:
    return min(1.0, shared_s / row.duration_s) if row.duration_s > 0 else 1.0


# Frames of a video as a row of vectors along time, without what all frames of the library have in common.

MEAN_VIDEOS = 500
"""The mean of a library is that of so many of its videos, chosen by their ids, which are hashes of the files."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """Frames of one video in time order: `times_s` `[n]` and `units` `[n, dim]`, float32.

    `units` are of unit length after the library's mean was taken away; a frame that equals the mean is zero.
    """

    times_s: NDArray[np.float64]
    units: NDArray[np.float32]

    @property
    def gap_s(self) -> float:
        """Usual time between two frames, 1 of a single frame."""
        return float(np.median(np.diff(self.times_s))) if len(self.times_s) > 1 else 1.0

    def at(self, times_s: NDArray[np.float64]) -> NDArray[np.float32]:
        """Vectors `[m, dim]` at these times, between two frames the mean of both, weighted by nearness."""
        if len(self.times_s) == 1:
            return np.repeat(self.units, len(times_s), axis=0)
        before = np.clip(np.searchsorted(self.times_s, times_s, side="right") - 1, 0, len(self.times_s) - 2)
        passed = (times_s - self.times_s[before]) / (self.times_s[before + 1] - self.times_s[before])
        share = np.clip(passed, 0.0, 1.0).astype(np.float32)[:, None]
        mixed: NDArray[np.float32] = self.units[before] * (1 - share) + self.units[before + 1] * share
        return mixed


def read_timeline(library: LibraryReader, video_id: str, space: str | None, mean: NDArray[np.float32]) -> Timeline:
    """Read the timeline of a video of a library, whose mean `[dim]` is taken away."""
    stored = library.vectors(video_id, space)
    return Timeline(stored.time_s, _unit(_unit(stored.vectors.astype(np.float32)) - mean))


def read_mean(library: LibraryReader, video_ids: Iterable[str], space: str | None) -> NDArray[np.float32]:
    """Mean of the unit vectors of some videos, each video counting once."""
    means: list[NDArray[np.float32]] = [
        _unit(library.vectors(video_id, space).vectors.astype(np.float32)).mean(axis=0)
        for video_id in islice(sorted(video_ids), MEAN_VIDEOS)
    ]
    mean: NDArray[np.float32] = np.mean(means, axis=0, dtype=np.float32)
    return mean


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: NDArray[np.float32] = vectors / np.maximum(lengths, np.float32(1e-6))
    unit[lengths[:, 0] < 1e-6] = 0.0
    return unit
