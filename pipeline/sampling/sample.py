"""One piece of one video: its sampled frames as JPEGs and model inputs, one by one, then what was found.

One thread decodes and scales; the caller's makes JPEGs and model inputs. Few pictures wait between the two, so memory
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

from pipeline.decoding.metadata import VideoMetadata
from pipeline.decoding.open import VideoReader, open_video
from pipeline.errors import NothingDecodes
from pipeline.images.convert import jpeg, rgb_scaler
from pipeline.prefetch import prefetch
from pipeline.sampling.types import Chunk, PieceSummary, SampledFrame, SamplingSettings
from pipeline.subtitles.sidecar import read_subtitles

DECODED_AHEAD = 4  # pictures waiting for JPEG and preparation

Seconds = dict[str, float]


class Pass(Protocol):
    """A pass over a video that has ended: `pipeline.decoding.open.VideoReader`, or `pipeline.decoding.gpu_reader.DeviceReader`."""

    facts: VideoMetadata
    start_s: float
    end_s: float
    decode_errors: int
    decoder: str
    fell_back: str | None


def read_piece(chunk: Chunk, reading: SamplingSettings) -> Generator[SampledFrame | PieceSummary, None, None]:
    """The pictures of a piece in order, then its summary.

    Subtitles are read with a whole video or the first part of one; an unreadable subtitle file does not stop a
    video, its message is in `subtitle_errors`.

    Raises:
        VideoError: nothing can be read from it; no picture has been given.
        SpanDamaged: the span cannot be read by itself.
    """
    source, path = chunk.identified.source, Path(chunk.identified.path)
    seconds: Seconds = defaultdict(float)
    given = 0
    with ExitStack() as opened:
        with timed(seconds, "decode"):
            video = opened.enter_context(open_video(path, source.uri, decoder=reading.decoder))
        with closing(prefetch(decoded(video, chunk, reading, seconds), DECODED_AHEAD)) as rgbs:
            for number, time_s, rgb in rgbs:
                given += 1
                yield _picture(number, time_s, rgb, reading, seconds)
        summary = summarize(chunk, video, given, seconds)
    yield summary


def summarize(chunk: Chunk, video: Pass, given: int, seconds: Seconds) -> PieceSummary:
    """What a pass found that has given so many pictures; reads the subtitles. Raises NothingDecodes for none."""
    source, path = chunk.identified.source, Path(chunk.identified.path)
    if not given and chunk.span is None:
        raise NothingDecodes(f"{source.uri}: frames decode but none gives a picture; make the file anew")
    with timed(seconds, "subtitles"):
        transcript, subtitle_errors = read_subtitles(path, source, video.facts) if chunk.index == 0 else ([], [])
    return PieceSummary(
        facts=video.facts,
        start_s=video.start_s,
        end_s=video.end_s,
        decode_errors=video.decode_errors,
        transcript=tuple(transcript),
        subtitle_errors=tuple(subtitle_errors),
        seconds=dict(seconds),
        decoder=video.decoder,
        fell_back=video.fell_back,
    )


def decoded(
    video: VideoReader, chunk: Chunk, reading: SamplingSettings, seconds: Seconds
) -> Generator[tuple[int, float, NDArray[np.uint8]], None, None]:
    """Number, time and working picture `[height, width, 3]` of each sample; adds its time to `seconds["decode"]`."""
    from av import FFmpegError

    aspect = Fraction(video.facts.sample_aspect_ratio).limit_denominator(100_000)
    to_rgb = rgb_scaler(aspect, reading.jpeg_side_px, reading.input.side_px)
    samples = video.samples(reading.fps, chunk.span)
    while True:
        with timed(seconds, "decode"):
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
def timed(seconds: Seconds, stage: str) -> Iterator[None]:
    """Adds the time spent inside to `seconds[stage]`."""
    began = time.monotonic()
    try:
        yield
    finally:
        seconds[stage] += time.monotonic() - began


def _picture(
    number: int, time_s: float, rgb: NDArray[np.uint8], reading: SamplingSettings, seconds: Seconds
) -> SampledFrame:
    with timed(seconds, "jpeg"):
        encoded, width_px, height_px = jpeg(rgb, reading.jpeg_side_px, reading.jpeg_quality)
    with timed(seconds, "prepare"):
        model_input = reading.input(rgb)
    return SampledFrame(number, time_s, encoded, width_px, height_px, model_input)
