"""Sample chunks on the GPU that embeds them, in this process: frames are decoded, scaled and cropped there.

Stands where `pipeline.sampling.sandbox.SandboxSampler` stands. A decoder that crashes takes this process down; on Ray
that is one worker, whose task is repeated, and the video fails when that has happened often enough.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator
from contextlib import closing
from pathlib import Path

from pipeline.decoding.base import Span
from pipeline.decoding.gpu_reader import GpuBatch, GpuReader
from pipeline.decoding.pyav_reader import PyavReader
from pipeline.decoding.split_video import split_video
from pipeline.images.convert import jpeg
from pipeline.sampling.sample import (
    Chunk,
    ChunkSummary,
    SampledFrame,
    SamplingSettings,
    Seconds,
    stopwatch,
    summarize,
    with_subtitles,
)


class GpuSampler:
    """A `Sampler` onto `device` ("cuda", "cuda:1"; "cpu" works too)."""

    def __init__(self, device: str) -> None:
        self._device = device

    def split(self, chunk: Chunk, settings: SamplingSettings) -> tuple[Span, ...]:
        """See `Sampler`."""
        path, name = Path(chunk.video.path), chunk.video.source.uri
        return split_video(path, name, settings.fps, settings.cut_s, settings.sharers)

    def sample(
        self, chunk: Chunk, settings: SamplingSettings
    ) -> Generator[list[SampledFrame] | ChunkSummary, None, None]:
        """See `Sampler`; the model inputs are tensors on the device."""
        source, path = chunk.video.source, Path(chunk.video.path)
        seconds: Seconds = defaultdict(float)
        count = 0
        with closing(PyavReader(path, source.uri, chunk.video.is_playlist)) as exact:
            video = GpuReader(exact, self._device)
            batches = video.batches(settings.fps, settings.input, settings.jpeg_side_px, chunk.span)
            while (batch := _next(batches, seconds)) is not None:
                count += len(batch.numbers)
                with stopwatch(seconds, "jpeg"):
                    frames = _sampled_frames(batch, settings)
                yield frames
            summary = summarize(chunk, video, count, seconds)
        yield with_subtitles(summary, chunk)

    def close(self) -> None:
        """Do nothing: no state is held between two chunks."""


def _next(batches: Generator[GpuBatch, None, None], seconds: Seconds) -> GpuBatch | None:
    with stopwatch(seconds, "decode"):
        return next(batches, None)


def _sampled_frames(batch: GpuBatch, settings: SamplingSettings) -> list[SampledFrame]:
    encoded = [jpeg(rgb, settings.jpeg_side_px, settings.jpeg_quality) for rgb in batch.images]
    return [
        SampledFrame(number, time_s, data, width_px, height_px, model_input)
        for number, time_s, (data, width_px, height_px), model_input in zip(
            batch.numbers, batch.times_s, encoded, batch.inputs, strict=True
        )
    ]
