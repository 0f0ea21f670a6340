"""Data that sampling takes and returns: a chunk of a video, settings, sampled frames, a summary, rows."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from pipeline.decoding.base import Span
from pipeline.decoding.video_stream import VideoMetadata
from pipeline.images.convert import ModelInput
from pipeline.sources.fetch import FetchedVideo
from pipeline.subtitles import Line


@dataclass(frozen=True, slots=True)
class IngestSettings:
    """Settings by which a video becomes rows; a library holds them.

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
class SamplingSettings:
    """Settings by which a chunk is sampled.

    `fps` samples a second; JPEGs of at most `jpeg_side_px` on the longest side; `input` makes the model's input;
    a long video is split into spans of about `cut_s` seconds (0: never); frames are handed over `batch` at a time.
    """

    fps: float
    jpeg_side_px: int
    jpeg_quality: int
    decoder: str
    input: ModelInput
    cut_s: float = 0.0
    batch: int = 16


@dataclass(frozen=True, slots=True)
class Chunk:
    """A whole video (`span` None), or number `index` of the `of` spans that it is split into."""

    video: FetchedVideo
    span: Span | None = None
    of: int = 1
    index: int = 0


class SampledFrame(NamedTuple):
    """One sampled frame: see `FrameRow`; `model_input` is uint8 `[3, h, w]`."""

    number: int
    time_s: float
    jpeg: bytes
    width_px: int
    height_px: int
    model_input: NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class ChunkSummary:
    """Result of one pass over a chunk, apart from its frames.

    The video covers `[start_s, end_s)`; `end_s` is final for a whole video and for its last span. `decode_errors`
    counts packets that could not be read or decoded and frames that decoded with damage. `seconds` is the time
    spent on `decode`, `jpeg`, `prepare` and `subtitles`. `fell_back` says why PyAV replaced the requested decoder.
    """

    metadata: VideoMetadata
    start_s: float
    end_s: float
    decode_errors: int
    transcript: tuple[Line, ...]
    subtitle_errors: tuple[str, ...]
    seconds: Mapping[str, float]
    decoder: str
    fell_back: str | None = None


class Sampler(Protocol):
    """Sampler of one chunk at a time: `SandboxSampler` in a child process, `GpuSampler` in this one."""

    def split(self, chunk: Chunk, settings: SamplingSettings) -> tuple[Span, ...]:
        """Split a long video into spans; returns none where it is short or cannot be split."""

    def sample(
        self, chunk: Chunk, settings: SamplingSettings
    ) -> Generator[list[SampledFrame] | ChunkSummary, None, None]:
        """Yield the frames of a chunk in order, at most `settings.batch` at a time, then its summary."""

    def close(self) -> None:
        """Free what the sampler holds."""


@dataclass(frozen=True, slots=True)
class FrameRow:
    """One row of the frames table: the first instant `frame_no / fps` that shows it, its presentation time `time_s`.

    `width_px` and `height_px` are those of the JPEG; `vector` is float16 `[dim]` of unit length.
    """

    frame_no: int
    time_s: float
    width_px: int
    height_px: int
    jpeg: bytes
    vector: NDArray[np.float16]


def frame_row(frame: SampledFrame, vector: NDArray[np.float16]) -> FrameRow:
    """Combine a frame with its vector `[dim]`."""
    return FrameRow(frame.number, frame.time_s, frame.width_px, frame.height_px, frame.jpeg, vector)
