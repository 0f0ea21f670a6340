"""Things in frames, found and followed: by the library's detections, else by a detector, else by the index's vectors.

The library's detections count for a label if it holds any of that label in the video: a detector that knows some
labels says nothing of others. Where neither they nor a detector are at hand, the vectors tell in which frames a label
stands out from the rest of the video: there is no box then, the score is the calibrated similarity (see
`environment`), and a thing that is to be seen all the time does not stand out.
"""

from __future__ import annotations

import asyncio
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from agent.environment import Detect, Environment, calibrate
from agent.errors import InvalidReply, OutOfBudget
from agent.model import ShownFrame
from agent.session import Session

if TYPE_CHECKING:
    from index.rows import DetectionRow

Box = tuple[float, float, float, float]
"""x0, y0, x1, y1 as parts of the width and height."""
Source = Literal["library", "detector", "index"]

PRESENT = 1 / 3
"""The least similarity that counts as being there: three robust deviations, one of 740 unrelated frames."""
TRACKED_FRAMES = 32
WHOLE: Box = (0.0, 0.0, 1.0, 1.0)


@dataclass(frozen=True, slots=True)
class Detected:
    """A thing in a stored frame; `score` is 0 to 1. There is no `box` where only the index told (`source`)."""

    video_id: str
    frame_no: int
    time_s: float
    label: str
    score: float
    box: Box | None
    track_id: int | None
    source: Source


@dataclass(frozen=True, slots=True)
class Track:
    """One thing followed through a range; `score` is the mean of its sightings, which are in time order."""

    label: str
    start_s: float
    end_s: float
    score: float
    sightings: tuple[Detected, ...]


async def detect(
    session: Session, frames: Sequence[ShownFrame], label: str, within: Box = WHOLE
) -> tuple[Detected, ...]:
    """Where a label is in frames of one video, by time and the surest first; `within` looks only into a box.

    Boxes are those of whole frames in any case. Raises `InvalidReply` for an impossible box or label.
    """
    return ()


async def track(
    session: Session, video_id: str, label: str, start_s: float, end_s: float, count: int = TRACKED_FRAMES
) -> tuple[Track, ...]:
    """Things of a label followed through [start_s, end_s), the earliest first; at most `count` frames are looked at."""
    return ()


def zoom(frame: ShownFrame, box: Box) -> ShownFrame:
    """The part of a frame in a box, as large as the frame; raises `InvalidReply` for an impossible box."""
    return frame
