"""Types that all decoders share: a sample, a span of a video, an open video, a source of frames by number."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from av import VideoFrame

    from pipeline.decoding.video_stream import VideoMetadata


class PickError(Exception):
    """A decoder other than PyAV cannot read a video, or reads it otherwise. Never leaves the room."""


class SpanDamaged(Exception):
    """A span that cannot be read as a pass over the whole video would read it: damage, or misleading timestamps.

    Says nothing against the video: read it whole, and all of it that decodes comes out.
    """


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
    """The frame shown at instant `number / fps` after the start, at presentation time `time_s`."""

    number: int
    time_s: float
    frame: VideoFrame


class VideoReader(Protocol):
    """One video, open for reading.

    `start_s` is the time of its first frame. `end_s`, `decode_errors`, `decoder` (the one that decoded the last
    sample) and `fell_back` (why PyAV replaced the requested decoder) are final when `samples` ends.
    `end_s` is that of the video only if its end was read.
    """

    metadata: VideoMetadata
    start_s: float
    end_s: float
    decode_errors: int
    decoder: str
    fell_back: str | None

    def samples(self, fps: float, span: Span | None = None) -> Generator[TimedFrame, None, None]:
        """Yield each distinct frame that is shown at one of the instants `start + k / fps`, in order, once.

        The frame of an instant is the last one whose time is not after it; the last frame is shown for its
        own duration. `number` is the first `k` that shows the frame. Costs nothing per instant, so
        gaps of any length are free. With `span`, the samples of one part of the video; numbers and times count
        from the video's start all the same.

        Raises:
            SpanDamaged: a span cannot be read by itself; read the whole video.
        """

    def close(self) -> None:
        """Free what was opened; frames already returned stay valid."""


class FrameSource(Protocol):
    """A video as a list of frames in the order of presentation."""

    def __len__(self) -> int: ...

    def __call__(self, indices: Sequence[int]) -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
        """Decode frames: times `[n]` in seconds after the first frame, upright RGB images `[n, height, width, 3]`.

        Indices rise.

        Raises:
            PickError: it cannot.
        """
