"""Samples of a video: frames as JPEGs and model inputs, chunk by chunk, and the segments that they divide it into.

A chunk gives its frames one by one, then a summary. One thread decodes and scales; the caller's makes JPEGs and model
inputs. Few images wait between the two, so memory does not grow with the length of the video.
"""

from __future__ import annotations

import time
from bisect import bisect_left, bisect_right
from collections import defaultdict, deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Literal, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from kinodex.pipeline.decoding.open import open_video
from kinodex.pipeline.decoding.stream import Pass, Span, VideoMetadata, VideoReader
from kinodex.pipeline.errors import NotDrawn, NothingDecodes
from kinodex.pipeline.fetch import FetchedVideo
from kinodex.pipeline.images import ModelInput, jpeg, rgb_scaler
from kinodex.pipeline.subtitles import Line, read_subtitles

# Find the segments of a video: shots by its frames' vectors, fixed windows where there are none.

Z = 4.0
FLOOR = 0.08
CEILING = 0.30
LONGEST_SHOT_WINDOWS = 4  # a shot longer than this many windows is split into windows


@dataclass(frozen=True, slots=True)
class Segment:
    """A half-open time range `[start_s, end_s)` of a video."""

    start_s: float
    end_s: float
    kind: Literal["shot", "window"]


def find_segments(times_s: Sequence[float], distances: Sequence[float], end_s: float, window_s: float) -> list[Segment]:
    """Find segments that cover `[times_s[0], end_s)`: shots, or windows of `window_s` where there are none.

    `times_s` of the frames rise, at least one; `distances` are cosine ones of each to the one before: one fewer.
    """
    if len(distances) != len(times_s) - 1:
        raise ValueError(f"{len(times_s)} frames have one distance fewer, got {len(distances)}")
    return segments_between([times_s[i + 1] for i in changes(distances)], times_s, end_s, window_s)


def segments_between(cuts_s: Sequence[float], times_s: Sequence[float], end_s: float, window_s: float) -> list[Segment]:
    """Divide a video at its cuts, in order and inside it; arguments as of `find_segments`."""
    bounds = [times_s[0], *cuts_s, end_s]
    segments: list[Segment] = []
    for start, end in pairwise(bounds):
        if len(bounds) > 2 and end - start <= LONGEST_SHOT_WINDOWS * window_s:
            segments.append(Segment(start, end, "shot"))
        else:
            inside = times_s[bisect_right(times_s, start) : bisect_left(times_s, end)]
            segments += _windows([start, *inside], end, window_s)
    return segments


def changes(distances: Sequence[float], share: float = 1.0) -> list[int]:
    """Places where neighbours change by more than this share of what makes a shot; 0: between the first two."""
    if not len(distances):
        return []
    values = np.asarray(distances)
    median = float(np.median(values))
    spread = 1.4826 * float(np.median(np.abs(values - median)))
    threshold = share * min(max(median + Z * spread, FLOOR), CEILING)
    return [int(i) for i in np.flatnonzero(values > threshold)]


def _windows(times_s: Sequence[float], end_s: float, window_s: float) -> list[Segment]:
    """Make windows on a grid from the first time; one in which no frame starts joins the one before it."""
    starts: list[float] = []
    for at_s in times_s:
        start = times_s[0] + window_s * int((at_s - times_s[0]) / window_s)
        if not starts or start > starts[-1]:
            starts.append(start)
    bounds = [*starts, end_s]
    return [Segment(a, b, "window") for a, b in pairwise(bounds)]


# Sample one chunk of one video by its settings.

DECODED_AHEAD = 4  # images that wait for JPEG and preparation

Seconds = dict[str, float]


@dataclass(frozen=True, slots=True)
class IngestSettings:
    """Settings by which a video becomes rows; a library holds them. Windows are made where there are no shots."""

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
    a long video is split into spans of about `cut_s` seconds (0: never), or shorter ones so that `sharers` workers have
    some each; frames are handed over `batch` at a time; with `drawn_only` a film that kinodex did not draw is refused.
    `deinterlace` as `rgb_scaler` has it.
    """

    fps: float
    jpeg_side_px: int
    jpeg_quality: int
    decoder: str
    input: ModelInput
    cut_s: float = 0.0
    batch: int = 16
    sharers: int = 1
    drawn_only: bool = False
    deinterlace: bool = False


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
    speech: tuple[Line, ...]
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


def sample_frames(chunk: Chunk, settings: SamplingSettings) -> Generator[SampledFrame | ChunkSummary, None, None]:
    """Yield the frames of a chunk in order, then its summary, without subtitles; raises VideoError or SpanDamaged."""
    path, name, playlist = Path(chunk.video.path), chunk.video.source.uri, chunk.video.is_playlist
    seconds: Seconds = defaultdict(float)
    count = 0
    with ExitStack() as opened:
        with stopwatch(seconds, "decode"):
            video = opened.enter_context(open_video(path, name, decoder=settings.decoder, playlist=playlist))
            check_drawn(video.metadata, chunk, settings)
        with closing(prefetch(rgb_samples(video, chunk, settings, seconds), DECODED_AHEAD)) as samples:
            for number, time_s, rgb in samples:
                count += 1
                yield sampled_frame(number, time_s, rgb, settings, seconds)
        summary = summarize(chunk, video, count, seconds)
    yield summary


def check_drawn(metadata: VideoMetadata, chunk: Chunk, settings: SamplingSettings) -> None:
    if settings.drawn_only and not metadata.drawn:
        raise NotDrawn(
            f"{chunk.video.source.uri}: kinodex did not draw this film, and the space builtin knows no other; make a "
            "library in another space, or give --anyway: every ranking in it is then noise"
        )


def summarize(chunk: Chunk, video: Pass, count: int, seconds: Seconds) -> ChunkSummary:
    """Summarize a pass that yielded `count` frames, without subtitles. Raises NothingDecodes for no frame."""
    if not count and chunk.span is None:
        name = chunk.video.source.uri
        raise NothingDecodes(f"{name}: frames decode but none gives a picture; make the file again")
    facts = video.metadata, video.start_s, video.end_s, video.decode_errors
    return ChunkSummary(*facts, (), (), dict(seconds), video.decoder, video.fell_back)


def with_subtitles(summary: ChunkSummary, chunk: Chunk) -> ChunkSummary:
    """Read the subtitles of a whole video or its first span into its summary; other spans have none."""
    if chunk.index:
        return summary
    seconds: Seconds = defaultdict(float, summary.seconds)
    with stopwatch(seconds, "subtitles"):
        lines, errors = read_subtitles(Path(chunk.video.path), chunk.video.source, summary.metadata)
    return replace(summary, speech=tuple(lines), subtitle_errors=tuple(errors), seconds=dict(seconds))


def rgb_samples(
    video: VideoReader, chunk: Chunk, settings: SamplingSettings, seconds: Seconds
) -> Generator[tuple[int, float, NDArray[np.uint8]], None, None]:
    """Yield number, time and RGB `[height, width, 3]` of each sample; adds its time to `seconds["decode"]`."""
    from av import FFmpegError

    aspect = Fraction(video.metadata.sample_aspect_ratio).limit_denominator(100_000)
    to_rgb = rgb_scaler(aspect, settings.jpeg_side_px, settings.input.side_px, settings.deinterlace)
    samples = video.samples(settings.fps, chunk.span)
    while True:
        with stopwatch(seconds, "decode"):
            sample = next(samples, None)
            if sample is None:
                return
            try:
                rgb = to_rgb(sample.frame, sample.aspect)
            except FFmpegError:  # damage that shows only now, such as a colour space that does not exist
                video.decode_errors += 1
                continue
        yield sample.number, sample.time_s, rgb


def frame_row(frame: SampledFrame, vector: NDArray[np.float16]) -> FrameRow:
    return FrameRow(frame.number, frame.time_s, frame.width_px, frame.height_px, frame.jpeg, vector)


@contextmanager
def stopwatch(seconds: Seconds, stage: str) -> Iterator[None]:
    began = time.monotonic()
    try:
        yield
    finally:
        seconds[stage] += time.monotonic() - began


def sampled_frame(
    number: int, time_s: float, rgb: NDArray[np.uint8], settings: SamplingSettings, seconds: Seconds
) -> SampledFrame:
    with stopwatch(seconds, "jpeg"):
        encoded, width_px, height_px = jpeg(rgb, settings.jpeg_side_px, settings.jpeg_quality)
    with stopwatch(seconds, "prepare"):
        model_input = settings.input(rgb)
    return SampledFrame(number, time_s, encoded, width_px, height_px, model_input)


# Run an iterator a few items ahead of its reader, in a thread of its own.

Item = TypeVar("Item")


def prefetch(items: Generator[Item, None, None], depth: int) -> Generator[Item, None, None]:
    """Yield the same items in the same order, up to `depth` of them made before they are needed.

    `items` runs in one worker thread. An error in it is raised here, in place of the item that failed.
    When the reader stops early, no more items are made, and `items` is closed before this returns.
    """
    pool = ThreadPoolExecutor(max_workers=1)
    pending: deque[Future[Item | None]] = deque(pool.submit(next, items, None) for _ in range(depth))
    try:
        while (item := pending.popleft().result()) is not None:
            pending.append(pool.submit(next, items, None))
            yield item
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        items.close()
