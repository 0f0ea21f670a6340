"""One scale for all matches: deviations from what is usual in a video, and similarities from 0 to 1.

A cosine of 0.3 is a match in one space and noise in another, and a score of words means nothing beside either. So
every match is measured by how rare it is. Of vectors it is the deviation `z` from the median of the query over the
video, in robust standard deviations: chance reaches 3.5 once in a few thousand frames. A match of words has a
probability to occur by chance (`word_deviations`), and the deviation that a normal distribution exceeds as rarely.

A similarity is `z / (z + 6)`, 0 at and below the median: the best of a few thousand unrelated frames gets 0.37, one
that stands out (z = 12) 0.67. It has no upper end at which strong matches would become equal.
"""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
SIMILARITY_MIDPOINT = 6.0
"""The deviation from the median that is calibrated to 0.5."""
SAME_DISTANCE_SHARE = 1.4826
"""Standard deviations in one median absolute deviation of a normal distribution."""
FLAT = 1e-6
"""A deviation of cosines below this is rounding."""
NO_MATCH = -np.inf
"""The deviation of what does not match at all."""
_NORMAL = NormalDist()
_LEAST_CHANCE = 1e-300
LIKELY = 0.5
"""The chance from which a match is no match, as a cosine is none below the median."""


def robust_deviations(cosines: Floats, known: Floats) -> Floats:
    """Deviations [n, t] of cosines from the median of those `known` [m, t], in their robust standard deviations.

    The `t` queries have one scale, their mean: with a scale each, a weak match of a query that resembles few frames
    would beat a strong match of one that resembles many. All are 0 where nothing differs.
    """
    middle, scale = middle_and_scale(known)
    scale = scale if scale >= FLAT else float(known.std(axis=0).mean())
    return (cosines - middle) / scale if scale >= FLAT else np.zeros_like(cosines)


def middle_and_scale(known: Floats) -> tuple[Floats, float]:
    """Return the median of each query's cosines [m, t], and the mean of the queries' robust standard deviations."""
    middle = np.median(known, axis=0)
    return middle, SAME_DISTANCE_SHARE * float(np.median(np.abs(known - middle), axis=0).mean())


def deviation_of_chance(chance: float) -> float:
    """Return the deviation that a normal distribution exceeds with this probability."""
    return NO_MATCH if chance >= 1.0 else -_NORMAL.inv_cdf(max(chance, _LEAST_CHANCE))


def calibrate(deviations: Floats, midpoint: float = SIMILARITY_MIDPOINT) -> Floats:
    """Map deviations to similarities from 0 to 1, `midpoint` to 0.5."""
    above = np.maximum(deviations, 0.0)
    calibrated: Floats = above / (above + midpoint)
    return calibrated
