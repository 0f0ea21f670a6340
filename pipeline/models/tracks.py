"""Join detections of the same object in the frames of one video to tracks.

After SORT (Bewley et al. 2016, arXiv 1602.00763, section 3): each track's box is moved on at constant velocity,
the detections of a frame are assigned to tracks so that the sum of overlaps is largest (Hungarian algorithm),
pairs that overlap too little stay apart, and a track missing for some frames ends. Unlike SORT, the velocity is
that between the last two sightings instead of a Kalman filter's, since frames are sampled about once a second;
an object that stopped is found where it was last; labels never mix; and no track continues over a cut.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kinodex.pipeline.models.boxes import Box, Detection, box_ious

MIN_OVERLAP = 0.3
MAX_MISSED = 2
"""Frames in a row. Frames, not seconds: of a still picture a library stores only one."""


@dataclass(slots=True)
class _Track:
    """An object that may still be visible: its boxes so far."""

    number: int
    label: str
    sightings: list[tuple[float, Box]] = field(default_factory=list)
    missed: int = 0

    def expected(self, time_s: float) -> Box:
        """Extrapolate the box to a time at the velocity between the last two sightings."""
        (before_s, before), (last_s, last) = self.sightings[-2:] if len(self.sightings) > 1 else self.sightings * 2
        part = (time_s - last_s) / (last_s - before_s) if last_s > before_s else 0.0
        shifts = [part * (_middle(last, axis) - _middle(before, axis)) for axis in (0, 1)]
        return last[0] + shifts[0], last[1] + shifts[1], last[2] + shifts[0], last[3] + shifts[1]


def find_tracks(
    frames: Sequence[Sequence[Detection]],
    times_s: Sequence[float],
    cuts_s: Sequence[float] = (),
) -> list[list[int]]:
    """Number, from 0, the track of every detection of frames in time order; a shot begins at each of `cuts_s`."""
    tracks: list[_Track] = []
    numbers = []
    count, shot = 0, 0
    for found, time_s in zip(frames, times_s, strict=True):
        now = bisect_right(cuts_s, time_s)
        tracks = [track for track in tracks if track.missed <= MAX_MISSED] if now == shot else []
        shot = now
        continued = dict(_match(found, tracks, time_s))
        for each in tracks:
            each.missed += 1
        assigned = []
        for place, detection in enumerate(found):
            track = continued.get(place)
            if track is None:
                track = _Track(count, detection.label)
                tracks.append(track)
                count += 1
            track.sightings.append((time_s, detection.box))
            track.missed = 0
            assigned.append(track.number)
        numbers.append(assigned)
    return numbers


def _match(found: Sequence[Detection], tracks: Sequence[_Track], time_s: float) -> Iterator[tuple[int, _Track]]:
    if not found or not tracks:
        return
    from scipy.optimize import linear_sum_assignment

    fits = _match_scores(found, tracks, time_s)
    fits[fits < MIN_OVERLAP] = 0.0
    for place, number in zip(*linear_sum_assignment(fits, maximize=True), strict=True):
        if fits[place, number] > 0:
            yield int(place), tracks[number]


def _match_scores(found: Sequence[Detection], tracks: Sequence[_Track], time_s: float) -> NDArray[np.float64]:
    """Compute the overlap of every detection with every track `[found, tracks]`: as extrapolated, or as last seen."""
    boxes = [detection.box for detection in found]
    moved = box_ious(boxes, [track.expected(time_s) for track in tracks])
    stayed = box_ious(boxes, [track.sightings[-1][1] for track in tracks])
    same = np.array([[detection.label == track.label for track in tracks] for detection in found])
    return np.where(same, np.maximum(moved, stayed), 0.0)


def _middle(box: Box, axis: int) -> float:
    return (box[axis] + box[axis + 2]) / 2
