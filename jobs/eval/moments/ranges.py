"""Figures of ranges of time, and of the verdict that an event is there."""

from __future__ import annotations

from collections.abc import Sequence

from kinodex.jobs.eval.moments.cases import Found


def iou(one: Found, other: Found) -> float:
    """Shared time of two ranges over the time that they cover together; 0 in two videos."""
    shared_s = min(one[2], other[2]) - max(one[1], other[1])
    if one[0] != other[0] or shared_s <= 0:
        return 0.0
    return shared_s / (max(one[2], other[2]) - min(one[1], other[1]))


def best_iou(found: Found | None, relevant: Sequence[Found]) -> float:
    """IoU of a range with the true one that it fits best; 0 for none."""
    return 0.0 if found is None else max((iou(found, each) for each in relevant), default=0.0)


def auroc(present: Sequence[float], absent: Sequence[float]) -> float | None:
    """Chance that an event that is there has more evidence than one that is not, half for equal ones: the ROC area."""
    if not present or not absent:
        return None
    above = sum((one > other) + 0.5 * (one == other) for one in present for other in absent)
    return above / (len(present) * len(absent))
