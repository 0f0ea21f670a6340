"""The memory of an agent that explores: what it begins with, what enters it, and the last word that rests on it."""

from __future__ import annotations

from collections.abc import Sequence

from agent.core.protocol import ShownFrame
from agent.core.question import ScoredSegment
from agent.requests.tree import Decide, ScoreKind
from agent.session import Session
from agent.trace.events import Remembered
from agent.tree_search.frame_memory import Memory


def first_memory(session: Session, capacity: int) -> Memory:
    """A memory that holds, in a follow-up question, what was seen before it; without rewards, so it leaves first."""
    memory = Memory(capacity)
    if session.seen_before:
        remember(session, memory, session.seen_before, [None] * len(session.seen_before))
    return memory


def remember(session: Session, memory: Memory, frames: Sequence[ShownFrame], rewards: Sequence[float | None]) -> None:
    """Take the frames of a round into the memory, and tell what had to leave it."""
    evicted = memory.add(frames, rewards)
    session.emit(Remembered(session.account.rounds, tuple(frames), tuple(evicted)))


def last_word(
    session: Session, memory: Memory, candidates: Sequence[ScoredSegment] = (), scores: ScoreKind = "none"
) -> Decide:
    """The request for an answer from the memory, exploring being over."""
    return Decide(
        question=session.question,
        videos=session.environment.videos,
        candidates=tuple(candidates),
        frames=memory.frames,
        scores=scores,
        must_answer=True,
    )
