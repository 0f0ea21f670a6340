"""The tree of a search: the segments that may be explored next.

A segment is divided at the frames that were seen in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from kinodex.agent.limits.account import Account
from kinodex.agent.protocol.frames import ShownFrame
from kinodex.agent.protocol.videos import Segment
from kinodex.agent.videos.environment import Environment
from kinodex.agent.videos.scale import Floats


@dataclass(slots=True)
class Candidate:
    """A segment that may be explored: its reward 0..100 (None: unknown), query score and fused score 0..1.

    `divided`: it was explored before and stays a candidate beside its parts.
    """

    segment: Segment
    reward: float | None = None
    explanation: str = ""
    query_score: float = 0.0
    fused: float = 0.0
    divided: bool = False


@dataclass(slots=True)
class Tree:
    """The candidates by segment number; a number is never used twice. Several videos are several roots."""

    candidates: dict[int, Candidate] = field(default_factory=dict)
    sampled: set[tuple[str, int]] = field(default_factory=set)
    """Frames at which segments were divided: they count as seen, even before a model is shown them."""
    _next: int = 0

    def divide(self, number: int, frames: Sequence[ShownFrame], *, keep: bool = False) -> list[Candidate]:
        """Replace a candidate by the parts between `frames`, each of which begins a part; or `keep` it beside them."""
        parent = self.candidates[number].segment
        self.candidates[number].divided = True
        if not keep:
            del self.candidates[number]
        self.sampled |= {(frame.video_id, frame.frame_no) for frame in frames}
        cuts = [parent.start_s, *(frame.time_s for frame in frames), parent.end_s]
        return [self.add(parent.video_id, start_s, end_s) for start_s, end_s in pairwise(cuts) if start_s < end_s]

    def add(self, video_id: str, start_s: float, end_s: float) -> Candidate:
        """Add a candidate with the next number."""
        candidate = Candidate(Segment(self._next, video_id, start_s, end_s))
        self.candidates[self._next] = candidate
        self._next += 1
        return candidate


def unseen_times(tree: Tree, environment: Environment, account: Account, segment: Segment) -> Floats:
    """Return the times of the stored frames in a segment that were not sampled, and that no model has seen yet."""
    stored = environment.frame_times(segment.video_id)
    first, last = np.searchsorted(stored.time_s, [segment.start_s, segment.end_s])
    seen = {*account.shown_frame_nos(segment.video_id)}
    seen |= {frame_no for video_id, frame_no in tree.sampled if video_id == segment.video_id}
    unseen = [frame_no not in seen for frame_no in stored.frame_no[first:last].tolist()]
    times: Floats = stored.time_s[first:last][np.array(unseen, bool)]
    return times


def affordable(account: Account, count: int) -> int:
    """Return the part of `count` frames that the budget still allows."""
    return count if account.frames_left is None else min(count, account.frames_left)


def border_rewards(frames: Sequence[ShownFrame], parts: Sequence[Candidate]) -> list[float | None]:
    """Return the larger reward of the two parts that each frame borders; None if neither has one."""
    rewards: list[float | None] = []
    for frame in frames:
        beside = [part.reward for part in parts if frame.time_s in (part.segment.start_s, part.segment.end_s)]
        rewards.append(max((reward for reward in beside if reward is not None), default=None))
    return rewards
