"""State of a tree search: the segments that may be explored next, and the frames in memory.

A segment is divided at the frames that were seen in it. The memory holds a few frames, those with the highest rewards
(EEA, section 3.3, step iv).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from agent.core.budget import Account
from agent.core.protocol import ShownFrame
from agent.core.question import ScoredSegment, Segment
from agent.environment import Environment, Floats
from agent.requests.tree import Decide, ScoreKind
from agent.session import Session
from agent.trace.events import Remembered


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


@dataclass(slots=True)
class Memory:
    """At most `capacity` frames; the one with the lowest reward leaves first, of equals the oldest.

    A frame without a reward (None) counts as the lowest.
    """

    capacity: int
    held: list[tuple[ShownFrame, float | None]] = field(default_factory=list)

    def add(self, frames: Sequence[ShownFrame], rewards: Sequence[float | None]) -> list[ShownFrame]:
        """Add frames and return those that had to leave."""
        self.held += zip(frames, rewards, strict=True)
        evicted = []
        while len(self.held) > self.capacity:
            lowest = min(range(len(self.held)), key=lambda at: self._worth(at))
            evicted.append(self.held.pop(lowest)[0])
        return evicted

    @property
    def frames(self) -> tuple[ShownFrame, ...]:
        """The frames held, by video and in time order."""
        return tuple(sorted((frame for frame, _ in self.held), key=lambda frame: (frame.video_id, frame.time_s)))

    def _worth(self, at: int) -> float:
        reward = self.held[at][1]
        return -1.0 if reward is None else reward


def unseen_times(tree: Tree, environment: Environment, account: Account, segment: Segment) -> Floats:
    """Times of the stored frames in a segment that were not sampled, and that no model has seen yet."""
    stored = environment.vectors(segment.video_id)
    first, last = np.searchsorted(stored.time_s, [segment.start_s, segment.end_s])
    sampled = [frame_no for video_id, frame_no in tree.sampled if video_id == segment.video_id]
    seen = np.isin(stored.frame_no[first:last], account.shown_frame_nos(segment.video_id) + sampled)
    times: Floats = stored.time_s[first:last][~seen]
    return times


def affordable(account: Account, count: int) -> int:
    """The part of `count` frames that the budget still allows."""
    return count if account.frames_left is None else min(count, account.frames_left)


def shown_candidates(
    tree: Tree, environment: Environment, account: Account, score: Callable[[Candidate], float | None]
) -> tuple[ScoredSegment, ...]:
    """The candidates as the policy sees them; those without unseen frames cannot be explored."""
    return tuple(
        ScoredSegment(
            each.segment,
            score(each),
            each.explanation,
            explorable=len(unseen_times(tree, environment, account, each.segment)) > 0,
            divided=each.divided,
        )
        for each in tree.candidates.values()
    )


def border_rewards(frames: Sequence[ShownFrame], parts: Sequence[Candidate]) -> list[float | None]:
    """The larger reward of the two parts that each frame borders, None if neither has one."""
    rewards: list[float | None] = []
    for frame in frames:
        beside = [part.reward for part in parts if frame.time_s in (part.segment.start_s, part.segment.end_s)]
        rewards.append(max((reward for reward in beside if reward is not None), default=None))
    return rewards


def start_memory(session: Session, capacity: int) -> Memory:
    """Start a memory with the evidence before a follow-up question; its frames have no reward, so they leave first."""
    memory = Memory(capacity)
    if session.prior_frames:
        remember(session, memory, session.prior_frames, [None] * len(session.prior_frames))
    return memory


def remember(session: Session, memory: Memory, frames: Sequence[ShownFrame], rewards: Sequence[float | None]) -> None:
    """Add the frames of a round to the memory, and emit the frames that had to leave it."""
    evicted = memory.add(frames, rewards)
    session.emit(Remembered(session.account.rounds, tuple(frames), tuple(evicted)))


def final_request(
    session: Session, memory: Memory, candidates: Sequence[ScoredSegment] = (), scores: ScoreKind = "none"
) -> Decide:
    """Make the request for an answer from the memory when exploring is over."""
    return Decide(
        question=session.question,
        videos=session.environment.videos,
        candidates=tuple(candidates),
        frames=memory.frames,
        scores=scores,
        must_answer=True,
    )
