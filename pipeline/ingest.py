"""One video in, rows out: one thread decodes and scales, one makes JPEGs and model inputs, the caller embeds.

Each runs a bounded number of items ahead of the next, so memory does not grow with the video's length.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from pipeline.ahead import ahead
from pipeline.decode import VideoReader, open_video
from pipeline.errors import NothingDecodes
from pipeline.facts import VideoFacts
from pipeline.pictures import jpeg, rgb_scaler
from pipeline.shots import Segment, find_segments
from pipeline.sources import Source
from pipeline.subtitles import Line, read_subtitles
from pipeline.towers import ImageTower

DECODED_AHEAD = 4  # pictures waiting for JPEG and preparation

Item = TypeVar("Item")
Seconds = dict[str, float]


@dataclass(frozen=True, slots=True)
class IngestSettings:
    """How a video is turned into rows.

    `fps` samples a second; JPEGs of at most `jpeg_side_px` on the longest side; fixed windows of `window_s`
    where there are no shots; `batch_size` frames are embedded at a time.
    """

    fps: float = 1.0
    jpeg_side_px: int = 512
    jpeg_quality: int = 85
    window_s: float = 10.0
    batch_size: int = 16

    def __post_init__(self) -> None:
        allowed = {
            "fps": 0.001 <= self.fps <= 1000,
            "jpeg_side_px": 16 <= self.jpeg_side_px <= 16384,
            "jpeg_quality": 1 <= self.jpeg_quality <= 100,
            "window_s": self.window_s >= 0.1,
            "batch_size": self.batch_size >= 1,
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


@dataclass(frozen=True, slots=True)
class VideoSummary:
    """What one pass found; the video covers `[start_s, start_s + duration_s)`, whatever its header claims.

    `decode_errors` counts packets that could not be read or decoded and frames that decoded with damage.
    `seconds` is time spent in each stage (they overlap) and `total`, the time from first to last.
    """

    facts: VideoFacts
    frames: int
    start_s: float
    duration_s: float
    decode_errors: int
    segments: tuple[Segment, ...]
    transcript: tuple[Line, ...]
    subtitle_errors: tuple[str, ...]
    seconds: Mapping[str, float]


class _Picture(NamedTuple):
    number: int
    time_s: float
    jpeg: bytes
    width_px: int
    height_px: int
    model_input: NDArray[np.float32]


def read_video(
    path: Path,
    source: Source,
    settings: IngestSettings,
    tower: ImageTower,
    sink: Callable[[list[FrameRow]], None],
) -> VideoSummary:
    """Read one video and give its frames to `sink`, a batch at a time, in order.

    An unreadable subtitle file does not stop a video: its message is in `subtitle_errors`.

    Raises:
        VideoError: nothing can be read from it; `sink` has not been called.
    """
    began = time.monotonic()
    seconds: Seconds = defaultdict(float)
    times_s: list[float] = []
    distances: list[float] = []
    previous: NDArray[np.float32] | None = None
    with open_video(path, source.uri) as video:
        rgbs = ahead(decoded(video, settings, tower, seconds), DECODED_AHEAD)
        pictures = ahead(_pictures(rgbs, settings, tower, seconds), settings.batch_size)
        try:
            for batch in _batches(pictures, settings.batch_size):
                with _timed(seconds, "embed"):
                    vectors = tower.embed(np.stack([picture.model_input for picture in batch]))
                sink([_row(picture, vector) for picture, vector in zip(batch, vectors, strict=True)])
                times_s += [picture.time_s for picture in batch]
                wide = vectors.astype(np.float32)
                neighbours = wide if previous is None else np.vstack([previous, wide])
                distances += (1 - np.sum(neighbours[1:] * neighbours[:-1], axis=1)).tolist()
                previous = wide[-1]
        finally:
            pictures.close()
        with _timed(seconds, "subtitles"):
            transcript, subtitle_errors = read_subtitles(path, source, video.facts)
    if not times_s:
        raise NothingDecodes(f"{source.uri}: frames decode but none gives a picture; make the file anew")
    seconds["total"] = time.monotonic() - began
    return VideoSummary(
        facts=video.facts,
        frames=len(times_s),
        start_s=video.start_s,
        duration_s=video.end_s - video.start_s,
        decode_errors=video.decode_errors,
        segments=tuple(find_segments(times_s, distances, video.end_s, settings.window_s)),
        transcript=tuple(transcript),
        subtitle_errors=tuple(subtitle_errors),
        seconds=dict(seconds),
    )


def decoded(
    video: VideoReader, settings: IngestSettings, tower: ImageTower, seconds: Seconds
) -> Generator[tuple[int, float, NDArray[np.uint8]], None, None]:
    """Number, time and working picture `[height, width, 3]` of each sample; adds its time to `seconds["decode"]`."""
    from av import FFmpegError

    aspect = Fraction(video.facts.sample_aspect_ratio).limit_denominator(100_000)
    to_rgb = rgb_scaler(aspect, settings.jpeg_side_px, tower.input_side_px)
    samples = video.samples(settings.fps)
    while True:
        with _timed(seconds, "decode"):
            sample = next(samples, None)
            if sample is None:
                return
            try:
                rgb = to_rgb(sample.frame)
            except FFmpegError:  # damage that shows only now, such as a colour space that does not exist
                video.decode_errors += 1
                continue
        yield sample.number, sample.time_s, rgb


def _pictures(
    decoded: Generator[tuple[int, float, NDArray[np.uint8]], None, None],
    settings: IngestSettings,
    tower: ImageTower,
    seconds: Seconds,
) -> Generator[_Picture, None, None]:
    try:
        for number, time_s, rgb in decoded:
            with _timed(seconds, "jpeg"):
                encoded, width_px, height_px = jpeg(rgb, settings.jpeg_side_px, settings.jpeg_quality)
                picture = _Picture(number, time_s, encoded, width_px, height_px, tower.prepare(rgb))
            yield picture
    finally:
        decoded.close()


def _row(picture: _Picture, vector: NDArray[np.float16]) -> FrameRow:
    return FrameRow(picture.number, picture.time_s, picture.width_px, picture.height_px, picture.jpeg, vector)


def _batches(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch


@contextmanager
def _timed(seconds: Seconds, stage: str) -> Iterator[None]:
    began = time.monotonic()
    try:
        yield
    finally:
        seconds[stage] += time.monotonic() - began
