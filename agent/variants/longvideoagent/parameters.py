"""Settings of LongVideoAgent."""

from __future__ import annotations

from dataclasses import dataclass

from kinodex.agent.errors import BadSettings
from kinodex.agent.variants.base import check_at_least
from kinodex.agent.variants.longvideoagent.clips import CLIP_S

LARGEST_WINDOW = 3


@dataclass(frozen=True, slots=True)
class LongVideoAgentParameters:
    """The paper's settings (section 4.3): K is `rounds`, the evidence window is `window` clips (Table 4c)."""

    rounds: int = 5
    """Steps of the master at most: K."""
    window: int = 1
    """Neighbouring clips that one grounding returns."""
    frames: int = 15
    """Frames that a look shows, of the located clips or, before any is, of the video."""
    clip_s: float = CLIP_S
    """The length of a clip in seconds, about, of a video that has no clips of its own; 0: the library's segments."""
    clips: int = 240
    """How many clips are read at most, of those videos that match the question best: four hours of 60 s."""
    videos: int = 4
    """So many videos are read even if they have more clips."""
    vision: bool = True
    """The master may have clips looked at; else it reads only subtitles."""

    def __post_init__(self) -> None:
        check_at_least(self, rounds=1, window=1, frames=1, videos=1, clips=1, clip_s=0)
        if self.window > LARGEST_WINDOW:
            raise BadSettings(f"got window={self.window}; it is 1 to {LARGEST_WINDOW} clips")
