"""Find the segments of a video: shots by its frames' vectors, fixed windows where there are none.

A cut lies between two neighbouring sampled frames whose cosine distance stands out from the rest of this
video: above `median + Z * 1.4826 * MAD` of all neighbouring distances (a robust z-score; Iglewicz and Hoaglin
1993, section 3.3), but never below FLOOR, so that a still video has no cuts, and never above CEILING, so that
a video of nothing but cuts still has them.
"""

from __future__ import annotations

from bisect import bisect_left
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
    """Find segments that cover `[times_s[0], end_s)` without gap or overlap.

    Args:
        times_s: times of the sampled frames, rising; at least one.
        distances: cosine distance of each frame to the one before it; one fewer than times.
        end_s: end of the video.
        window_s: length of a fixed window.
    """
    if len(distances) != len(times_s) - 1:
        raise ValueError(f"{len(times_s)} frames have one distance fewer, got {len(distances)}")
    bounds = [times_s[0], *(times_s[i + 1] for i in _cuts(distances)), end_s]
    segments: list[Segment] = []
    for start, end in pairwise(bounds):
        if len(bounds) > 2 and end - start <= LONGEST_SHOT_WINDOWS * window_s:
            segments.append(Segment(start, end, "shot"))
        else:
            inside = times_s[bisect_left(times_s, start) : bisect_left(times_s, end)]
            segments += _windows(inside, end, window_s)
    return segments


def _cuts(distances: Sequence[float]) -> list[int]:
    if not distances:
        return []
    values = np.asarray(distances)
    median = float(np.median(values))
    spread = 1.4826 * float(np.median(np.abs(values - median)))
    threshold = min(max(median + Z * spread, FLOOR), CEILING)
    return [int(i) for i in np.flatnonzero(values > threshold)]


def _windows(times_s: Sequence[float], end_s: float, window_s: float) -> list[Segment]:
    """Make windows on a grid from the first time; one in which no frame starts joins the one before it."""
    starts: list[float] = []
    for time in times_s:
        start = times_s[0] + window_s * int((time - times_s[0]) / window_s)
        if not starts or start > starts[-1]:
            starts.append(start)
    bounds = [*starts, end_s]
    return [Segment(a, b, "window") for a, b in pairwise(bounds)]
