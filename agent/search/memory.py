"""The memory of a search: a few frames, those with the highest rewards (VCA, section 3.2; EEA, section 3.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kinodex.agent.protocol.frames import ShownFrame


@dataclass(slots=True)
class Memory:
    """The frames that a policy is shown, in the order of their arrival.

    Beyond `capacity` those with the lowest rewards leave first, of equal ones the latest; before them those without a
    reward (None), the oldest first. The `cited` ones, by video and number, leave last.
    """

    capacity: int
    held: list[tuple[ShownFrame, float | None]] = field(default_factory=list)
    cited: set[tuple[str, int]] = field(default_factory=set)

    def make_room(self, count: int = 0) -> list[ShownFrame]:
        """Remove what is more than the capacity once `count` frames are added, and return it."""
        over = max(0, len(self.held) + count - self.capacity)
        worst = sorted(range(len(self.held)), key=self._worth)[:over]
        evicted = [self.held[at][0] for at in sorted(worst)]
        self.held = [each for at, each in enumerate(self.held) if at not in worst]
        return evicted

    def add(self, frames: Sequence[ShownFrame], rewards: Sequence[float | None]) -> list[ShownFrame]:
        """Add the frames of a round with their rewards; return what leaves, which may be among them."""
        self.held += zip(frames, rewards, strict=True)
        return self.make_room()

    @property
    def frames(self) -> tuple[ShownFrame, ...]:
        """The frames held, in the order of arrival."""
        return tuple(frame for frame, _ in self.held)

    @property
    def in_time_order(self) -> tuple[ShownFrame, ...]:
        """The frames held, by video and time."""
        return tuple(sorted(self.frames, key=lambda frame: (frame.video_id, frame.time_s)))

    def _worth(self, at: int) -> tuple[bool, float, int]:
        frame, reward = self.held[at]
        cited = (frame.video_id, frame.frame_no) in self.cited
        return (cited, -1.0, at) if reward is None else (cited, reward, -at)
