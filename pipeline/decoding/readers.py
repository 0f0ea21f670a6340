"""Types that all decoders share: a sample, a span of a video, an open video, a source of frames by number."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from kinodex.pipeline.decoding.stream import VideoMetadata

if TYPE_CHECKING:
    from av import VideoFrame


class PickError(Exception):
    """A decoder other than PyAV cannot read a video, or reads it otherwise. Never leaves the room."""


class SpanDamaged(Exception):
    """A span that cannot be read as a pass over the whole video would read it; read the video whole."""


@dataclass(frozen=True, slots=True)
class Span:
    """The part `[first_pts, until_pts)` of one video, in units of its stream's time base.

    Both are times of key frames, except that the first span begins with the first frame, and that the last one ends
    with the video (None). The samples in it have the numbers `[first_number, until_number)`.
    """

    first_pts: int
    until_pts: int | None
    first_number: int
    until_number: int | None


@dataclass(frozen=True, slots=True)
class TimedFrame:
    """The frame shown at instant `number / fps` after the start, at presentation time `time_s`.

    `aspect` is the shape of its pixels, if the stream says it for each frame; None: that of the metadata.
    """

    number: int
    time_s: float
    frame: VideoFrame
    aspect: Fraction | None = None


class Pass(Protocol):
    """A pass over a video: a `VideoReader`, or a `kinodex.pipeline.gpu.GpuReader`.

    `start_s` is the time of its first frame. `end_s`, `decode_errors`, `decoder` (the one that decoded the last
    sample) and `fell_back` (why PyAV replaced the requested decoder) are final when it has ended.
    `end_s` is that of the video only if its end was read.
    """

    metadata: VideoMetadata
    start_s: float
    end_s: float
    decode_errors: int
    decoder: str
    fell_back: str | None


class VideoReader(Pass, Protocol):
    """One video, open for reading."""

    def samples(self, fps: float, span: Span | None = None) -> Generator[TimedFrame, None, None]:
        """Yield each distinct frame that is shown at one of the instants `start + k / fps`, in order, once.

        The frame of an instant is the last one whose time is not after it; the last frame is shown for its own
        duration. `number` is the first `k` that shows the frame. Costs nothing per instant, so gaps of any length are
        free. With `span`, the samples of one part of the video; numbers and times count from the video's start all the
        same.

        Raises SpanDamaged: a span cannot be read by itself; read the whole video.
        """

    def close(self) -> None:
        """Free what was opened; frames already returned stay valid."""


FrameSource = tuple[int, Callable[[Sequence[int]], tuple[NDArray[np.float64], NDArray[np.uint8]]]]
"""A video as a list of frames in the order of presentation: their number, and a function of rising indices.

It gives times `[n]` in seconds after the first frame and upright RGB `[n, height, width, 3]`, or raises PickError.
"""
