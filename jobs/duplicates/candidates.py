"""Pairs of videos that may share a part: a few frames, spread over one, are near to frames of the other.

Never all pairs are compared. A library of up to `IN_MEMORY_FRAMES` frames is searched in memory, exactly; a larger
one through its vector index, frame by frame: the cost grows with the number of these frames, not with its square.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from kinodex.index.library import LibraryReader
from kinodex.jobs.duplicates.alignment import ALIKE
from kinodex.jobs.duplicates.timelines import Timeline

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
    """Return the places of the frames of a video that are searched.

    There is one each `every_s`, `LEAST_PROBES` or more, evenly spread.
    """
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
    """Keep the pairs with this many votes among the best `PARTNERS` of one of their videos, in a fixed order."""
    of_video: dict[str, list[tuple[int, Pair]]] = defaultdict(list)
    for pair, count in votes.items():
        if count >= least:
            for video in pair:
                of_video[video].append((-count, pair))
    kept: Iterable[Pair] = (pair for each in of_video.values() for _, pair in sorted(each)[:PARTNERS])
    return sorted(set(kept))


def _pair(one: str, other: str) -> Pair:
    return (one, other) if one < other else (other, one)
