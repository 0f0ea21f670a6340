"""Frames that a model is shown, and the numbers under which replies cite frames and notes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

Detail = Literal["auto", "low", "high"]


@dataclass(frozen=True, slots=True)
class ShownFrame:
    """One frame handed to a model. `time_s` is the time within `video_id` that a player shows."""

    video_id: str
    frame_no: int
    time_s: float
    width_px: int
    height_px: int
    jpeg: bytes = field(repr=False)
    label: int = 0
    """The number under which a run shows the frame, from 1 in the order of arrival; 0: its place in the request."""
    detail: Detail = "auto"
    """The resolution at which a server reads it (OpenAI's `image_url.detail`); "auto": the request's or the role's."""


def citation_numbers(frames: Sequence[ShownFrame], notes: Sequence[object] = ()) -> tuple[list[int], list[int]]:
    """Return the numbers under which replies cite frames and notes as evidence; notes are numbered on from the frames.

    Frames have their labels if all have one, else their places, from 1.
    """
    labels = [frame.label for frame in frames]
    numbers = labels if all(labels) else list(range(1, len(frames) + 1))
    first = max(numbers, default=0) + 1
    return numbers, list(range(first, first + len(notes)))
