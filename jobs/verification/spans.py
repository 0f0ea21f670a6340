"""Moments that a model looks at, and its verdicts on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from kinodex.index.rows import Hit
from kinodex.jobs.export.moments import Moment

Found = TypeVar("Found", Hit, Moment)


@dataclass(frozen=True, slots=True)
class Span:
    """The moment `[start_s, end_s)` of a video."""

    video_id: str
    start_s: float
    end_s: float

    @classmethod
    def of(cls, found: Hit | Moment) -> Span:
        if isinstance(found, Hit):
            return cls(found.video_id, found.time_s, found.end_s)
        return cls(found.video.video_id, found.start_s, found.end_s)


@dataclass(frozen=True, slots=True)
class Verdict:
    """A yes or no for a `reason`; None where no reply could be used, and the reason says why."""

    present: bool | None
    reason: str
