"""Which detections in the frames of one video are the same thing: tracks.

After SORT (Bewley et al. 2016, arXiv 1602.00763, section 3): each track's box is moved on at constant velocity,
the detections of a frame are assigned to tracks so that the sum of overlaps is largest (Hungarian algorithm),
pairs that overlap too little stay apart, and a track unseen for some frames ends. Other than there, the velocity
is that between the last two sightings instead of a Kalman filter's, since frames are sampled about once a second;
a thing that stopped is found where it was last seen; labels never mix; and no track goes on over a cut.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pipeline.models.boxes import Box, Detection, overlaps

MIN_OVERLAP = 0.3
MAX_MISSED = 2
"""Frames in a row. Frames, not seconds: while the picture stands still, a library stores only one."""


@dataclass(slots=True)
class _Track:
    number: int
    label: str
    sightings: list[tuple[float, Box]] = field(default_factory=list)
    missed: int = 0

    def expected(self, time_s: float) -> Box:
        """Where the thing is then if it goes on as between its last two sightings."""
        (before_s, before), (last_s, last) = self.sightings[-2:] if len(self.sightings) > 1 else self.sightings * 2
        part = (time_s - last_s) / (last_s - before_s) if last_s > before_s else 0.0
        shifts = [part * (_middle(last, axis) - _middle(before, axis)) for axis in (0, 1)]
        return last[0] + shifts[0], last[1] + shifts[1], last[2] + shifts[0], last[3] + shifts[1]


def find_tracks(
    frames: Sequence[Sequence[Detection]],
    times_s: Sequence[float],
    cuts_s: Sequence[float] = (),
    min_overlap: float = MIN_OVERLAP,
    max_missed: int = MAX_MISSED,
) -> list[list[int]]:
    """A track number, from 0, for every detection of every frame.

    `frames` are in time order, at `times_s`; `cuts_s` are the sorted times at which a new shot begins.
    """
    tracks: list[_Track] = []
    numbers = []
    count, shot = 0, 0
    for found, time_s in zip(frames, times_s, strict=True):
        now = bisect_right(cuts_s, time_s)
        tracks = [track for track in tracks if track.missed <= max_missed] if now == shot else []
        shot = now
        known = dict(_pairs(found, tracks, time_s, min_overlap))
        for each in tracks:
            each.missed += 1
        given = []
        for place, detection in enumerate(found):
            track = known.get(place)
            if track is None:
                track = _Track(count, detection.label)
                tracks.append(track)
                count += 1
            track.sightings.append((time_s, detection.box))
            track.missed = 0
            given.append(track.number)
        numbers.append(given)
    return numbers


def _pairs(
    found: Sequence[Detection], tracks: Sequence[_Track], time_s: float, min_overlap: float
) -> Iterator[tuple[int, _Track]]:
    """Places in `found` with the tracks that they belong to."""
    if not found or not tracks:
        return
    from scipy.optimize import linear_sum_assignment

    fits = _fits(found, tracks, time_s)
    fits[fits < min_overlap] = 0.0
    for place, number in zip(*linear_sum_assignment(fits, maximize=True), strict=True):
        if fits[place, number] > 0:
            yield int(place), tracks[number]


def _fits(found: Sequence[Detection], tracks: Sequence[_Track], time_s: float) -> NDArray[np.float64]:
    """How well every detection overlaps every track `[found, tracks]`: where it should be by now, or where it was."""
    boxes = [detection.box for detection in found]
    moved = overlaps(boxes, [track.expected(time_s) for track in tracks])
    stayed = overlaps(boxes, [track.sightings[-1][1] for track in tracks])
    same = np.array([[detection.label == track.label for track in tracks] for detection in found])
    return np.where(same, np.maximum(moved, stayed), 0.0)


def _middle(box: Box, axis: int) -> float:
    return (box[axis] + box[axis + 2]) / 2
