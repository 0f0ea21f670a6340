"""Settings of VCA, for short and long videos."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kinodex.agent.variants.base import check_at_least

SHORT_VIDEO_S = 300.0


@dataclass(frozen=True, slots=True)
class VCAParameters:
    """The paper's settings for long videos (section 4.1); `for_duration` gives those for short ones."""

    frames: int = 6
    """Frames sampled in a round: N."""
    memory: int = 16
    """Frames kept from round to round, for the decisions and the answer."""
    reward: Literal["model", "image", "none"] = "model"
    """Scores of segments: by a model, by how their border frames match the question, or none."""
    tree_search: bool = True
    """The tree is searched; else frames are chosen from the whole video round by round."""
    videos: int = 16
    """How many videos are searched at most."""
    rounds: int = 30
    """Segments opened at most. The paper sets no limit."""

    def __post_init__(self) -> None:
        check_at_least(self, frames=1, memory=1, videos=1, rounds=1)

    @classmethod
    def for_duration(cls, duration_s: float) -> VCAParameters:
        return cls(frames=4, memory=8) if duration_s < SHORT_VIDEO_S else cls()
