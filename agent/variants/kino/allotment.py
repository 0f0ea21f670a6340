"""The choice of a round's frames: each goes where it is worth most, and leaves two halves that promise half as much.

A frame is worth, in a segment with n frames unseen, `(rating / 100) ** sharpness * n`: what is looked for is in one of
the two halves that it leaves behind. So a round looks into several segments, a short one gets few frames and no dead
one any, and a doubtful rating costs a frame or two and not a round.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kinodex.agent.protocol.videos import Segment
from kinodex.agent.search.coverage import Times
from kinodex.agent.search.tree import Candidate

LEAST_RATING = 0.1
"""A segment of which nothing is expected counts as rated so: a rating errs, and what is found may not answer."""
CHOSEN = 2.0
"""Factor of the worth of the segment that the policy chose."""
LEAST_ROUND = 2
"""Frames of a round, however little the second one is worth."""
MIDDLE = 0.5
"""The part of a segment, around its middle, in which a match draws a frame: beside a border it would tell little."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Unseen frames of a segment, at these times [n] in seconds, and the worth of a frame for each of them."""

    number: int
    video_id: str
    worth: float
    times_s: Times

    @property
    def promise(self) -> float:
        return self.worth * len(self.times_s)

    def halves(self, time_s: float) -> list[Stretch]:
        """Return what is left on both sides of a frame, of half the worth."""
        sides = (self.times_s[self.times_s < time_s], self.times_s[self.times_s > time_s])
        return [Stretch(self.number, self.video_id, self.worth / 2, side) for side in sides if len(side)]


def worth_of(candidate: Candidate, opened: Segment, sharpness: float) -> float:
    """Return the worth of a frame in a segment; without a rating the segment counts by its query score."""
    rating = candidate.query_score if candidate.reward is None else candidate.reward / 100
    worth: float = max(rating, LEAST_RATING) ** sharpness
    return worth * (CHOSEN if is_within(candidate.segment, opened) else 1.0)


def allot(
    stretches: Sequence[Stretch], matches_s: Mapping[str, Sequence[float]], count: int, drawn: int, least_share: float
) -> dict[int, Times]:
    """Return the times of a round's frames by segment, `count` at most.

    `matches_s` are times of matches by video, the best first; they draw `drawn` frames at most. A round ends before
    a frame that is worth less than `least_share` of its best one.
    """
    left, chosen = [stretch for stretch in stretches if len(stretch.times_s)], defaultdict(list)
    least = least_share * max((stretch.promise for stretch in left), default=0.0)
    for shown in range(count):
        best = max(left, key=lambda stretch: stretch.promise, default=None)
        if best is None or (shown >= LEAST_ROUND and best.promise < least):
            break
        near = _near_middle(best.times_s, matches_s.get(best.video_id, ())) if drawn else None
        drawn -= near is not None
        time_s = float(best.times_s[(len(best.times_s) - 1) // 2]) if near is None else near
        chosen[best.number].append(time_s)
        left = [stretch for stretch in left if stretch is not best] + best.halves(time_s)
    return {number: np.sort(chosen[number]) for number in sorted(chosen)}


def is_within(part: Segment, whole: Segment) -> bool:
    """Return True if a segment lies within another one."""
    return part.video_id == whole.video_id and whole.start_s <= part.start_s and part.end_s <= whole.end_s


def _near_middle(times_s: Times, matches_s: Sequence[float]) -> float | None:
    margin_s = (1 - MIDDLE) / 2 * (times_s[-1] - times_s[0])
    low_s, high_s = times_s[0] + margin_s, times_s[-1] - margin_s
    return next((time_s for time_s in matches_s if low_s <= time_s <= high_s), None)
