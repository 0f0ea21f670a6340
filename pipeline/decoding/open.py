"""Decode one video and hand out the frame that is shown at each sample instant, with its exact time.

`pipeline.decoding.timestamps` says what a frame's time is. PyAV is the reference: it reads everything, exactly, whole or in
spans. The other decoders are held to it and give way to it: see `pipeline.decoding.select`.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from av import VideoFrame

    from pipeline.decoding.metadata import VideoMetadata
    from pipeline.decoding.spans import Span


@dataclass(frozen=True, slots=True)
class Sample:
    """The frame shown at instant `number / fps` after the start, at presentation time `time_s`."""

    number: int
    time_s: float
    frame: VideoFrame


class VideoReader(Protocol):
    """One video, open for reading.

    `start_s` is the time of its first frame. `end_s`, `decode_errors`, `decoder` (the one that gave the last
    sample) and `fell_back` (why another than the one asked for had to take over) are final when `samples` ends.
    `end_s` is that of the video only if its end was read.
    """

    facts: VideoMetadata
    start_s: float
    end_s: float
    decode_errors: int
    decoder: str
    fell_back: str | None

    def samples(self, fps: float, span: Span | None = None) -> Generator[Sample, None, None]:
        """Each distinct frame that is shown at one of the instants `start + k / fps`, in order, once.

        The frame of an instant is the last one whose time is not after it; the last frame is shown for its
        own duration. `number` is the first `k` that shows the frame. Costs nothing per instant, so
        gaps of any length are free. With `span`, those of one part of the video; numbers and times count from
        the video's start all the same.

        Raises:
            SpanDamaged: a span cannot be read by itself; read the whole video.
        """

    def close(self) -> None:
        """Free what was opened; frames already given stay valid."""


@contextmanager
def open_video(path: Path, name: str | None = None, *, decoder: str = "pyav") -> Iterator[VideoReader]:
    """Open `path` for one pass over its frames; messages call it `name`.

    Args:
        decoder: one of `pipeline.decoding.select.DECODERS`, or "auto".

    Raises:
        ValueError: no such decoder.
        VideoError: there is nothing to decode in it; see `pipeline.errors`.
        SourceMissing, SourceForbidden: the file cannot be read.
    """
    from pipeline.decoding.indexed_reader import PickedReader
    from pipeline.decoding.pyav_reader import PyavReader
    from pipeline.decoding.select import check

    check(decoder)
    exact = PyavReader(path, name or path.name)
    video: VideoReader = exact if decoder == "pyav" else PickedReader(exact, decoder)
    try:
        yield video
    finally:
        video.close()


def probe(path: Path, name: str | None = None) -> VideoMetadata:
    """The facts of a video: opens it, decodes one frame, closes it. Raises as `open_video`."""
    with open_video(path, name) as video:
        return video.facts
