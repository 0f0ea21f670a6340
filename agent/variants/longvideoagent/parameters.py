"""Settings of LongVideoAgent."""

from __future__ import annotations

from dataclasses import dataclass

from kinodex.agent.errors import BadSettings
from kinodex.agent.search.tree_search import Form
from kinodex.agent.variants.base import check_at_least, restore_paper
from kinodex.agent.variants.longvideoagent.clips import CLIP_S
from kinodex.agent.videos.library_videos import AnchorsFrom

LARGEST_WINDOW = 3


@dataclass(frozen=True, slots=True)
class LongVideoAgentParameters:
    """The paper's settings (section 4.3): K is `rounds`, the evidence window is `window` clips (Table 4c)."""

    rounds: int = 5
    """Steps of the master, the last of which is the answer: K."""
    window: int = 1
    """Neighbouring clips that one grounding returns."""
    frames: int = 15
    """Frames of the located clips that a look shows."""
    clip_s: float = CLIP_S
    """The length of a clip in seconds, about; 0: the library's segments are the clips."""
    clips: int = 240
    """How many clips are read at most, of those videos that match the question best: four hours of 60 s."""
    videos: int = 4
    """So many videos are read even if they have more clips."""
    vision: bool = True
    """The master may have clips looked at; else it reads only subtitles."""
    anchors_from: AnchorsFrom = "all"
    """Where clips and videos are found without the grounding agent: in pictures, in words, or in both."""
    chapters: bool = False
    """Prompts list the titles and times of the library's scenes or chapters."""
    form: Form = "ours"
    """"paper": the paper's rules where ours differ, that of `anchors_from` too."""

    def __post_init__(self) -> None:
        restore_paper(self, {"anchors_from": "frames"})
        check_at_least(self, rounds=1, window=1, frames=1, videos=1, clips=1, clip_s=0)
        if self.window > LARGEST_WINDOW:
            raise BadSettings(f"got window={self.window}; it is 1 to {LARGEST_WINDOW} clips")
