"""What an ingest is told of its frames, and the row that each becomes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipeline.sampling.types import SampledFrame


@dataclass(frozen=True, slots=True)
class IngestSettings:
    """How a video is turned into rows.

    `fps` samples a second; JPEGs of at most `jpeg_side_px` on the longest side; fixed windows of `window_s`
    where there are no shots.
    """

    fps: float = 1.0
    jpeg_side_px: int = 512
    jpeg_quality: int = 85
    window_s: float = 10.0

    def __post_init__(self) -> None:
        allowed = {
            "fps": 0.001 <= self.fps <= 1000,
            "jpeg_side_px": 16 <= self.jpeg_side_px <= 16384,
            "jpeg_quality": 1 <= self.jpeg_quality <= 100,
            "window_s": self.window_s >= 0.1,
        }
        for name, fits in allowed.items():
            if not fits:
                raise ValueError(f"{name}={getattr(self, name)} is out of range; see IngestSettings")


@dataclass(frozen=True, slots=True)
class FrameRow:
    """One sampled frame: the first instant `frame_no / fps` that shows it, its presentation time `time_s`.

    `width_px` and `height_px` are those of the JPEG; `vector` is float16 `[dim]` of unit length.
    """

    frame_no: int
    time_s: float
    width_px: int
    height_px: int
    jpeg: bytes
    vector: NDArray[np.float16]


def frame_row(picture: SampledFrame, vector: NDArray[np.float16]) -> FrameRow:
    """A picture with its vector `[dim]`."""
    return FrameRow(picture.number, picture.time_s, picture.width_px, picture.height_px, picture.jpeg, vector)
