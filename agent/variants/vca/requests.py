"""Requests of VCA: the reward model's and the exploration agent's (Figures 6 to 8)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kinodex.agent.protocol.videos import ScoredSegment
from kinodex.agent.requests.tree import Decide, ScoreSegments


@dataclass(frozen=True, slots=True)
class Round:
    """A round of the exploration: the segments that were new in it, and the number of the one that was chosen."""

    segments: tuple[ScoredSegment, ...]
    chosen: int


@dataclass(frozen=True, kw_only=True)
class RewardSegments(ScoreSegments):
    """Imagine, explain and score each part of the segment that was opened, consistently with before (Figures 6, 7)."""

    template: ClassVar[str] = "vca_reward"


@dataclass(frozen=True, kw_only=True)
class ExploreSegment(Decide):
    """Answer, or choose a segment to explore, by the scores and the frames in the memory (Figure 8).

    `dialogue` holds the rounds so far, which the prompt writes as a conversation (section 7).
    """

    template: ClassVar[str] = "vca_explore"
    dialogue: tuple[Round, ...] = ()
