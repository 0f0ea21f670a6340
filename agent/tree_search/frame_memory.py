"""The memory of an agent that explores: a few frames, those with the highest rewards (EEA, section 3.3, step iv)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from agent.core.protocol import ShownFrame
from agent.core.question import ScoredSegment
from agent.requests.tree import Decide, ScoreKind
from agent.session import Session
from agent.trace.events import Remembered


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
