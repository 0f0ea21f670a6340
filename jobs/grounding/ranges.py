"""Ranges in which evidence stands out: grown around its peaks, and cut at shot borders where these are near."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kinodex.agent.videos.scale import Floats
from kinodex.jobs.export.moment_rule import SNAP_S
from kinodex.jobs.grounding.evidence import Evidence

KEEP_SHARE = 0.7
"""A range goes on while the evidence is at least this share of its peak."""
BRIDGE_S = 2.0
"""A shorter stretch of weaker evidence does not end a range."""


@dataclass(frozen=True, slots=True)
class EvidenceRange:
    """A range `[start_s, end_s)` of a video, and the deviation of its peak."""

    video_id: str
    start_s: float
    end_s: float
    deviation: float
    by_words: bool


def evidence_ranges(evidence: Evidence, borders_s: Sequence[float], most: int) -> list[EvidenceRange]:
    """Find the `most` ranges with the highest peaks, the best first; none of them overlap.

    `borders_s` are the times at which shots begin, in order. Evidence at or below 0 is none.
    """
    free = np.isfinite(evidence.deviation) & (evidence.deviation > 0)
    found: list[EvidenceRange] = []
    while len(found) < most and free.any():
        peak = int(np.argmax(np.where(free, evidence.deviation, -np.inf)))
        first, last = _run(evidence, free, peak)
        free[first : last + 1] = False
        start_s, end_s = _snapped(evidence, first, last, peak, borders_s)
        if all(end_s <= other.start_s or start_s >= other.end_s for other in found):
            deviation = float(evidence.deviation[peak])
            found.append(EvidenceRange(evidence.video_id, start_s, end_s, deviation, bool(evidence.by_words[peak])))
    return found


def _run(evidence: Evidence, free: NDArray[np.bool_], peak: int) -> tuple[int, int]:
    """Return the first and last frame of the run around a peak; weaker stretches up to `BRIDGE_S` long are bridged."""
    strong = free & (evidence.deviation >= KEEP_SHARE * evidence.deviation[peak])
    first = last = peak
    while (before := _next(strong, free, first, -1)) is not None:
        if evidence.start_s[first] - evidence.end_s[before] > BRIDGE_S:
            break
        first = before
    while (after := _next(strong, free, last, 1)) is not None:
        if evidence.start_s[after] - evidence.end_s[last] > BRIDGE_S:
            break
        last = after
    return first, last


def _next(strong: NDArray[np.bool_], free: NDArray[np.bool_], at: int, step: int) -> int | None:
    """Return the next strong frame in a direction, None if another range or the video's end comes first."""
    at += step
    while 0 <= at < len(strong) and free[at]:
        if strong[at]:
            return at
        at += step
    return None


def _snapped(evidence: Evidence, first: int, last: int, peak: int, borders_s: Sequence[float]) -> tuple[float, float]:
    """Return the ends of a run, each moved to the nearest shot border within `SNAP_S` that leaves the peak inside."""
    start_s, end_s = float(evidence.start_s[first]), float(evidence.end_s[last])
    borders: Floats = np.asarray(borders_s, float)
    before = borders[borders <= evidence.start_s[peak]]
    after = borders[borders >= evidence.end_s[peak]]
    return _nearest_range(before, start_s), _nearest_range(after, end_s)


def _nearest_range(borders_s: Floats, time_s: float) -> float:
    if not len(borders_s):
        return time_s
    nearest = float(borders_s[np.argmin(np.abs(borders_s - time_s))])
    return nearest if abs(nearest - time_s) <= SNAP_S else time_s
