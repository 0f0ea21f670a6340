"""Sample one chunk of one video: its frames as JPEGs and model inputs, one by one, then a summary.

One thread decodes and scales; the caller's makes JPEGs and model inputs. Few images wait between the two, so memory
does not grow with the length of the video.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Generator, Iterator
from contextlib import ExitStack, closing, contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pipeline.decoding.base import VideoReader
from pipeline.decoding.open import open_video
from pipeline.decoding.video_stream import VideoMetadata
from pipeline.errors import NothingDecodes
from pipeline.images.convert import jpeg, rgb_scaler
from pipeline.prefetch import prefetch
from pipeline.sampling.types import Chunk, ChunkSummary, SampledFrame, SamplingSettings
from pipeline.subtitles import read_subtitles

DECODED_AHEAD = 4  # images that wait for JPEG and preparation

Seconds = dict[str, float]


class Pass(Protocol):
    """A pass over a video that has ended: a `VideoReader`, or a `pipeline.decoding.gpu_reader.GpuReader`."""

    metadata: VideoMetadata
    start_s: float
    end_s: float
    decode_errors: int
    decoder: str
    fell_back: str | None


def sample_chunk(chunk: Chunk, settings: SamplingSettings) -> Generator[SampledFrame | ChunkSummary, None, None]:
    """Yield the frames of a chunk in order, then its summary.

    Subtitles are read with a whole video or its first span; an unreadable subtitle file does not stop a video, its
    message is in `subtitle_errors`.

    Raises:
        VideoError: nothing can be read from it; no frame was yielded.
        SpanDamaged: the span cannot be read by itself.
    """
    source, path = chunk.video.source, Path(chunk.video.path)
    seconds: Seconds = defaultdict(float)
    count = 0
    with ExitStack() as opened:
        with stopwatch(seconds, "decode"):
            video = opened.enter_context(open_video(path, source.uri, decoder=settings.decoder))
        with closing(prefetch(rgb_samples(video, chunk, settings, seconds), DECODED_AHEAD)) as samples:
            for number, time_s, rgb in samples:
                count += 1
                yield _sampled_frame(number, time_s, rgb, settings, seconds)
        summary = summarize(chunk, video, count, seconds)
    yield summary


def summarize(chunk: Chunk, video: Pass, count: int, seconds: Seconds) -> ChunkSummary:
    """Summarize a pass that yielded `count` frames, and read the subtitles. Raises NothingDecodes for no frame."""
    source, path = chunk.video.source, Path(chunk.video.path)
    if not count and chunk.span is None:
        raise NothingDecodes(f"{source.uri}: frames decode but none gives a picture; make the file again")
    with stopwatch(seconds, "subtitles"):
        transcript, subtitle_errors = read_subtitles(path, source, video.metadata) if chunk.index == 0 else ([], [])
    return ChunkSummary(
        metadata=video.metadata,
        start_s=video.start_s,
        end_s=video.end_s,
        decode_errors=video.decode_errors,
        transcript=tuple(transcript),
        subtitle_errors=tuple(subtitle_errors),
        seconds=dict(seconds),
        decoder=video.decoder,
        fell_back=video.fell_back,
    )


def rgb_samples(
    video: VideoReader, chunk: Chunk, settings: SamplingSettings, seconds: Seconds
) -> Generator[tuple[int, float, NDArray[np.uint8]], None, None]:
    """Yield number, time and RGB `[height, width, 3]` of each sample; adds its time to `seconds["decode"]`."""
    from av import FFmpegError

    aspect = Fraction(video.metadata.sample_aspect_ratio).limit_denominator(100_000)
    to_rgb = rgb_scaler(aspect, settings.jpeg_side_px, settings.input.side_px)
    samples = video.samples(settings.fps, chunk.span)
    while True:
        with stopwatch(seconds, "decode"):
            sample = next(samples, None)
            if sample is None:
                return
            try:
                rgb = to_rgb(sample.frame)
            except FFmpegError:  # damage that shows only now, such as a colour space that does not exist
                video.decode_errors += 1
                continue
        yield sample.number, sample.time_s, rgb


@contextmanager
def stopwatch(seconds: Seconds, stage: str) -> Iterator[None]:
    """Add the time spent inside to `seconds[stage]`."""
    began = time.monotonic()
    try:
        yield
    finally:
        seconds[stage] += time.monotonic() - began


def _sampled_frame(
    number: int, time_s: float, rgb: NDArray[np.uint8], settings: SamplingSettings, seconds: Seconds
) -> SampledFrame:
    with stopwatch(seconds, "jpeg"):
        encoded, width_px, height_px = jpeg(rgb, settings.jpeg_side_px, settings.jpeg_quality)
    with stopwatch(seconds, "prepare"):
        model_input = settings.input(rgb)
    return SampledFrame(number, time_s, encoded, width_px, height_px, model_input)
