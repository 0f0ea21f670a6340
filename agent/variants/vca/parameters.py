"""Settings of VCA, for short and long videos."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from kinodex.agent.search.memory import Pictures
from kinodex.agent.search.tree_search import Form
from kinodex.agent.variants.base import check_at_least, restore_paper
from kinodex.agent.videos.library_videos import AnchorsFrom

SHORT_VIDEO_S = 300.0
PAPER: Mapping[str, object] = {"slack": 0, "pictures": "large", "quotes": False}
"""Settings of `form=paper`."""


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
    rounds: int = 10
    """Segments opened at most."""
    slack: int = 14
    """Frames that the memory may hold beyond `memory` before it lets go of some, the new ones counted."""
    pictures: Pictures = "small"
    """The size at which frames are shown: all at low detail, the new ones at full, or all at full."""
    quotes: bool = True
    """Requests show what is said and stands on screen at the times of their frames; else they see only pictures."""
    anchors_from: AnchorsFrom = "all"
    """By what several videos are ranked: pictures, words (speech, text on screen, captions), or both."""
    chapters: bool = False
    """Scenes or chapters of the library are the first level of the tree, and prompts list their summaries."""
    form: Form = "ours"
    """"paper": all of the paper's rules where ours differ, `slack`, `pictures` and `quotes` among them."""

    def __post_init__(self) -> None:
        restore_paper(self, PAPER)
        check_at_least(self, frames=1, memory=1, videos=1, rounds=1, slack=0)

    @classmethod
    def for_duration(cls, duration_s: float) -> VCAParameters:
        return cls(frames=4, memory=8, slack=6) if duration_s < SHORT_VIDEO_S else cls()
