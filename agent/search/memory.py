"""The memory of a search: a few frames, those with the highest rewards (EEA, section 3.3, step iv)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from kinodex.agent.protocol.frames import ShownFrame
from kinodex.agent.requests.tree import Decide
from kinodex.agent.session import Session
from kinodex.agent.traces.events import Remembered

ALIKE = 20.0
"""Points of reward within which frames are worth the same to the memory: rewards are that rough."""
Pictures = Literal["small", "new large", "large"]
"""The size of pictures: all at low detail; those of the present round at full detail; all at full detail."""


@dataclass(slots=True)
class Memory:
    """The frames that a policy is shown, in the order of their arrival.

    Room for new frames is made before they arrive, so that what a round showed is seen by all its requests: no more
    leave than have to, for `capacity + slack` to be held. Those with the lowest rewards leave first, of nearly equal
    ones (`ALIKE`) the latest, so that the part of a prompt that a prefix cache serves stays; before them those without
    a reward (None), the oldest first. The `cited` ones, by video and number, leave last.

    The papers' memory is `exact`: the frames with the lowest rewards leave once the new ones are there, which may be
    among them.
    """

    capacity: int
    slack: int = 0
    held: list[tuple[ShownFrame, float | None]] = field(default_factory=list)
    cited: set[tuple[str, int]] = field(default_factory=set)
    exact: bool = False

    def make_room(self, count: int) -> list[ShownFrame]:
        """Remove what has to leave before this many frames are added, and return it."""
        return [] if self.exact else self._let_go(len(self.held) + count - self.capacity - self.slack)

    def _let_go(self, count: int) -> list[ShownFrame]:
        worst = sorted(range(len(self.held)), key=self._worth)[: max(0, count)]
        evicted = [self.held[at][0] for at in sorted(worst)]
        self.held = [each for at, each in enumerate(self.held) if at not in worst]
        return evicted

    def add(self, frames: Sequence[ShownFrame], rewards: Sequence[float | None]) -> list[ShownFrame]:
        """Add the frames of a round with their rewards; returns what leaves for them, if the memory is `exact`."""
        self.held += zip(frames, rewards, strict=True)
        return self._let_go(len(self.held) - self.capacity) if self.exact else []

    @property
    def frames(self) -> tuple[ShownFrame, ...]:
        """The frames held, in the order of arrival."""
        return tuple(frame for frame, _ in self.held)

    def _worth(self, at: int) -> tuple[bool, float, int]:
        frame, reward = self.held[at]
        cited = (frame.video_id, frame.frame_no) in self.cited
        return (cited, -1.0, at) if reward is None else (cited, reward if self.exact else reward // ALIKE, -at)


def shown_frames(held: Memory | Sequence[ShownFrame], new: int, pictures: Pictures) -> tuple[ShownFrame, ...]:
    """Return the frames of a memory, or a row of them, at the detail of their pictures.

    The last `new` are of this round.
    """
    frames = tuple(held.frames if isinstance(held, Memory) else held)
    if pictures == "large":
        return frames
    older = len(frames) - (new if pictures == "new large" else 0)
    return (*(replace(frame, detail="low") for frame in frames[:older]), *frames[older:])


def start_memory(session: Session, capacity: int, slack: int = 0) -> Memory:
    """Start a memory with the evidence before a follow-up question; its frames have no reward, so they leave first."""
    memory = Memory(capacity, slack)
    if session.prior_frames:
        frames = session.label(session.prior_frames)[-(capacity + slack) :]
        memory.add(frames, [None] * len(frames))
        session.emit(Remembered(session.account.rounds, frames, ()))
    return memory


def remember(
    session: Session,
    memory: Memory,
    frames: Sequence[ShownFrame],
    rewards: Sequence[float | None],
    evicted: Sequence[ShownFrame] = (),
) -> None:
    """Add the frames of a round to the memory; `evicted` are those that left it before they came."""
    left = memory.add(frames, rewards)
    session.emit(Remembered(session.account.rounds, tuple(frames), (*evicted, *left)))


def final_request(session: Session, memory: Memory, pictures: Pictures = "large", **more: Any) -> Decide:
    """Make the request for an answer from the memory when exploring is over; `more` are further fields of it."""
    return Decide(
        question=session.question,
        videos=session.environment.videos,
        frames=shown_frames(memory, 0, pictures),
        must_answer=True,
        chapters=session.chapters,
        **{"candidates": (), "scores": "none", **more},
    )
