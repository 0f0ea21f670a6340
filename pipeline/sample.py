"""Samples of a video: frames as JPEGs and model inputs, chunk by chunk.

A chunk gives its frames one by one, then a summary. One thread decodes and scales; the caller's makes JPEGs and model
inputs. Few images wait between the two, so memory does not grow with the length of the video.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Generator, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from kinodex.pipeline.decoding.open import open_video
from kinodex.pipeline.decoding.readers import Pass, Span, VideoReader
from kinodex.pipeline.decoding.stream import VideoMetadata
from kinodex.pipeline.errors import NothingDecodes
from kinodex.pipeline.fetch import FetchedVideo
from kinodex.pipeline.images import ModelInput, jpeg, rgb_scaler
from kinodex.pipeline.prefetch import prefetch
from kinodex.pipeline.subtitles.lines import Line, read_subtitles

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
    some each; frames are handed over `batch` at a time; `deinterlace` as `rgb_scaler` has it.
    """

    fps: float
    jpeg_side_px: int
    jpeg_quality: int
    decoder: str
    input: ModelInput
    cut_s: float = 0.0
    batch: int = 16
    sharers: int = 1
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
        with closing(prefetch(rgb_samples(video, chunk, settings, seconds), DECODED_AHEAD)) as samples:
            for number, time_s, rgb in samples:
                count += 1
                yield sampled_frame(number, time_s, rgb, settings, seconds)
        summary = summarize(chunk, video, count, seconds)
    yield summary


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
