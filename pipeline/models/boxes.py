"""Boxes in an image: `x0, y0, x1, y1`, each a fraction of the width or height, 0 to 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

DUPLICATE_IOU = 0.7
"""Two boxes of one label that overlap more than this are one object found twice."""
Box = tuple[float, float, float, float]


class Detection(NamedTuple):
    """One object found in one image; `score` is the model's, 0 to 1."""

    label: str
    score: float
    box: Box


def has_area(box: Box) -> bool:
    return box[2] > box[0] and box[3] > box[1]


def box_ious(some: Sequence[Box], others: Sequence[Box]) -> NDArray[np.float64]:
    """Compute the intersection over union of every pair, `[some, others]`; 0 where both are without area."""
    one = np.asarray(some, np.float64).reshape(-1, 1, 4)
    two = np.asarray(others, np.float64).reshape(1, -1, 4)
    sides = np.minimum(one[..., 2:], two[..., 2:]) - np.maximum(one[..., :2], two[..., :2])
    common = sides.clip(0).prod(-1)
    union = (one[..., 2:] - one[..., :2]).prod(-1) + (two[..., 2:] - two[..., :2]).prod(-1) - common
    shared: NDArray[np.float64] = np.divide(common, union, out=np.zeros_like(common), where=union > 0)
    return shared


def suppress_overlaps(found: Sequence[Detection]) -> list[Detection]:
    """Drop each detection that overlaps a better one of its label by more than `DUPLICATE_IOU`; the best come first.

    Greedy non-maximum suppression, as detectors without a set loss need it (OWLv2, Minderer et al. 2023).
    """
    kept: list[Detection] = []
    for each in sorted(found, key=lambda detection: -detection.score):
        rivals = [other.box for other in kept if other.label == each.label]
        if not (box_ious([each.box], rivals) > DUPLICATE_IOU).any():
            kept.append(each)
    return kept
