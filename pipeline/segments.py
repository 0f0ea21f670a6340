"""Find the segments of a video: shots by its frames' vectors, fixed windows where there are none."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

Z = 4.0
FLOOR = 0.08
CEILING = 0.30
LONGEST_SHOT_WINDOWS = 4  # a shot longer than this many windows is split into windows


@dataclass(frozen=True, slots=True)
class Segment:
    """A half-open time range `[start_s, end_s)` of a video."""

    start_s: float
    end_s: float
    kind: Literal["shot", "window"]


def find_segments(times_s: Sequence[float], distances: Sequence[float], end_s: float, window_s: float) -> list[Segment]:
    """Find segments that cover `[times_s[0], end_s)`: shots, or windows of `window_s` where there are none.

    `times_s` of the frames rise, at least one; `distances` are cosine ones of each to the one before: one fewer.
    """
    if len(distances) != len(times_s) - 1:
        raise ValueError(f"{len(times_s)} frames have one distance fewer, got {len(distances)}")
    return segments_between([times_s[i + 1] for i in changes(distances)], times_s, end_s, window_s)


def segments_between(cuts_s: Sequence[float], times_s: Sequence[float], end_s: float, window_s: float) -> list[Segment]:
    """Divide a video at its cuts, in order and inside it; arguments as of `find_segments`."""
    bounds = [times_s[0], *cuts_s, end_s]
    segments: list[Segment] = []
    for start, end in pairwise(bounds):
        if len(bounds) > 2 and end - start <= LONGEST_SHOT_WINDOWS * window_s:
            segments.append(Segment(start, end, "shot"))
        else:
            inside = times_s[bisect_right(times_s, start) : bisect_left(times_s, end)]
            segments += _windows([start, *inside], end, window_s)
    return segments


def changes(distances: Sequence[float], share: float = 1.0) -> list[int]:
    """Return the places where neighbours differ by more than this share of a shot's least; 0: between the first two."""
    if not len(distances):
        return []
    values = np.asarray(distances)
    median = float(np.median(values))
    spread = 1.4826 * float(np.median(np.abs(values - median)))
    threshold = share * min(max(median + Z * spread, FLOOR), CEILING)
    return [int(i) for i in np.flatnonzero(values > threshold)]


def _windows(times_s: Sequence[float], end_s: float, window_s: float) -> list[Segment]:
    """Make windows on a grid from the first time; one in which no frame starts joins the one before it."""
    starts: list[float] = []
    for at_s in times_s:
        start = times_s[0] + window_s * int((at_s - times_s[0]) / window_s)
        if not starts or start > starts[-1]:
            starts.append(start)
    bounds = [*starts, end_s]
    return [Segment(a, b, "window") for a, b in pairwise(bounds)]
