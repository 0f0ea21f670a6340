"""What a video says about itself, read from its container and its first decoded frame."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class VideoMetadata:
    """Claims of the header, corrected where the first frame knows better.

    `width_px` and `height_px` are as displayed: square pixels, after rotation. `fps` and
    `claimed_duration_s` are what the header says, which may be wrong; what really decoded is in
    `VideoSummary`. `rotation_deg` is counterclockwise. `zero_s` is the presentation time that a
    player shows as 0:00, the time that sidecar subtitles count from.
    """

    container: str
    stream_index: int
    codec: str
    pix_fmt: str
    width_px: int
    height_px: int
    sample_aspect_ratio: float
    rotation_deg: int
    fps: float | None
    claimed_duration_s: float | None
    zero_s: float
    interlaced: bool
    has_audio: bool
