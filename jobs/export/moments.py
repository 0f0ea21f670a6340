"""Moments: ranges of videos with a label, the one thing that all kinds of export but datasets are made of."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from kinodex.index.clocks import presentation_s
from kinodex.index.rows import Basis, VideoRow

SAID = ("label", "score", "source", "speaker")
SHOT = "shot"


@dataclass(frozen=True, slots=True)
class Moment:
    """The range `[start_s, end_s)` of a video, in the times that a player shows."""

    video: VideoRow
    start_s: float
    end_s: float
    label: str = ""
    score: float | None = None
    source: str = "range"
    """The place it comes from: "range" (given), "evidence", "shot", "video", or the source of a hit or of rows."""
    speaker: str | None = None
    basis: Basis = "ranking"
    probability: float | None = None
    present: bool | None = None
    reason: str = ""
    """These four as a `Hit` has them."""

    @property
    def presentation_start_s(self) -> float:
        """Beginning by the timestamps of the file."""
        return presentation_s(self.video, self.start_s)

    @property
    def presentation_end_s(self) -> float:
        """End by the timestamps of the file."""
        return presentation_s(self.video, self.end_s)

    def within(self, start_s: float | None, end_s: float | None) -> Moment | None:
        """Cut to `[start_s, end_s)` (None: no bound) and to the video; None if nothing is left.

        What is said may begin before the first picture and end after the last.
        """
        is_said, video = self.source == "speech", self.video
        first_s = max(self.start_s, -math.inf if is_said else video.start_s, -math.inf if start_s is None else start_s)
        last_s = min(self.end_s, math.inf if is_said else video.end_s, math.inf if end_s is None else end_s)
        if first_s > last_s or (first_s == last_s and self.start_s < self.end_s):
            return None
        return replace(self, start_s=first_s, end_s=last_s)


def by_video(moments: Iterable[Moment]) -> dict[str, list[Moment]]:
    """Group moments by the ids of their videos, both in the order in which they come."""
    groups: dict[str, list[Moment]] = {}
    for moment in moments:
        groups.setdefault(moment.video.video_id, []).append(moment)
    return groups


def in_time_order(moments: Iterable[Moment]) -> list[Moment]:
    """Sort moments by their times."""
    return sorted(moments, key=lambda each: (each.start_s, each.end_s))


def moment_facts(moments: Sequence[Moment]) -> dict[str, str]:
    """Digests, by name, of all that an export says of moments: an unfinished one goes on if they are the same."""
    facts: dict[str, Any] = {f"{name}s": [getattr(each, name) for each in moments] for name in SAID}
    facts["ranges"] = [(each.video.video_id, each.start_s, each.end_s) for each in moments]
    facts["videos"] = {each.video.video_id: asdict(each.video) for each in moments}
    return {name: digest(values) for name, values in facts.items()}


def digest(facts: Any) -> str:
    """Digest of facts as JSON holds them, of others by their texts."""
    return hashlib.sha256(json.dumps(facts, default=str).encode()).hexdigest()
