"""Boxes in a picture: `x0, y0, x1, y1`, each a fraction of the width or height, 0 to 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Box = tuple[float, float, float, float]


class Detection(NamedTuple):
    """One thing found in one picture; `score` is the model's, 0 to 1."""

    label: str
    score: float
    box: Box


def overlaps(some: Sequence[Box], others: Sequence[Box]) -> NDArray[np.float64]:
    """Intersection over union of every pair, `[some, others]`; 0 where both are without area."""
    one = np.asarray(some, np.float64).reshape(-1, 1, 4)
    two = np.asarray(others, np.float64).reshape(1, -1, 4)
    sides = np.minimum(one[..., 2:], two[..., 2:]) - np.maximum(one[..., :2], two[..., :2])
    common = sides.clip(0).prod(-1)
    union = (one[..., 2:] - one[..., :2]).prod(-1) + (two[..., 2:] - two[..., :2]).prod(-1) - common
    shared: NDArray[np.float64] = np.divide(common, union, out=np.zeros_like(common), where=union > 0)
    return shared


def best_of_each(found: Sequence[Detection], overlap: float) -> list[Detection]:
    """What is left, best first, when of detections of one label that overlap more than this the best one stays.

    Greedy non-maximum suppression, as detectors without a set loss need it (OWLv2, Minderer et al. 2023).
    """
    kept: list[Detection] = []
    for each in sorted(found, key=lambda detection: -detection.score):
        rivals = [other.box for other in kept if other.label == each.label]
        if not (overlaps([each.box], rivals) > overlap).any():
            kept.append(each)
    return kept
