"""Choice of frames that cover a segment.

The paper (EEA, section 3.3) asks for the set of frames that minimises the largest distance from any frame
of the segment to its nearest chosen one, some being chosen already (the anchors). Greedy farthest-point selection
does not reach that minimum; here it is found exactly, over the frames that are really stored and with the segment's
ends counted: for a given radius one sweep tells how many frames are needed, and the radius is found by bisection.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Times = NDArray[np.float64]
BISECTIONS = 60


def cover(points_s: Times, available_s: Times, fixed_s: Times, count: int) -> Times:
    """Choose up to `count` of `available_s` so that every point is near a chosen or a fixed time.

    All three are sorted times in seconds, `points_s` the ones to be covered and `available_s` without
    `fixed_s`. Returns the chosen times, sorted: all of `available_s` if there are no more than `count`.
    """
    if count <= 0 or len(points_s) == 0:
        return available_s[:0]
    if len(available_s) <= count:
        return available_s
    low, high = 0.0, float(points_s[-1] - points_s[0]) + float(np.ptp(available_s)) + 1.0
    best: Times = available_s[:count]
    for _ in range(BISECTIONS):
        radius_s = (low + high) / 2
        chosen = _sweep(points_s, available_s, fixed_s, count, radius_s)
        if chosen is None:
            low = radius_s
        else:
            best, high = chosen, radius_s
    return _fill(available_s, fixed_s, best, count)


def spread(start_s: float, end_s: float, available_s: Times, count: int) -> Times:
    """Up to `count` distinct available times nearest to equally spaced instants inside [start_s, end_s)."""
    return nearest(start_s + (end_s - start_s) * np.arange(1, count + 1) / (count + 1), available_s)


def nearest(instants_s: Times, available_s: Times) -> Times:
    """Return the nearest available time for each instant, none twice; sorted, and fewer if they run out."""
    left = list(available_s)
    chosen = []
    for instant_s in instants_s[: len(left)]:
        at = int(np.argmin(np.abs(np.asarray(left) - instant_s)))
        chosen.append(left.pop(at))
    return np.asarray(sorted(chosen), dtype=np.float64)


def _sweep(points_s: Times, available_s: Times, fixed_s: Times, count: int, radius_s: float) -> Times | None:
    """Return the fewest available times that cover with this radius, None if `count` are not enough.

    Left to right, the first uncovered point gets the rightmost time that reaches it: no other choice covers
    more.
    """
    uncovered = points_s[_distances(points_s, fixed_s) > radius_s]
    chosen: list[float] = []
    at = 0
    while at < len(uncovered):
        reaching = int(np.searchsorted(available_s, uncovered[at] + radius_s, side="right")) - 1
        if len(chosen) == count or reaching < 0 or available_s[reaching] < uncovered[at] - radius_s:
            return None
        chosen.append(float(available_s[reaching]))
        at = int(np.searchsorted(uncovered, chosen[-1] + radius_s, side="right"))
    return np.asarray(chosen, dtype=np.float64)


def _fill(available_s: Times, fixed_s: Times, chosen_s: Times, count: int) -> Times:
    while len(chosen_s) < count:
        taken = np.concatenate([fixed_s, chosen_s])
        farthest = available_s[int(np.argmax(_distances(available_s, taken)))]
        chosen_s = np.append(chosen_s, farthest)
    return np.sort(chosen_s)


def _distances(points_s: Times, chosen_s: Times) -> Times:
    if len(chosen_s) == 0:
        return np.full(len(points_s), np.inf)
    chosen_s = np.sort(chosen_s)
    after = np.searchsorted(chosen_s, points_s)
    left = np.abs(points_s - chosen_s[np.maximum(after - 1, 0)])
    right = np.abs(chosen_s[np.minimum(after, len(chosen_s) - 1)] - points_s)
    return np.minimum(left, right)
