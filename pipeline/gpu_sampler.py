"""Sample chunks on the GPU that embeds them, in this process: frames are decoded, scaled and cropped there.

Stands where `SandboxSampler` stands. A decoder that crashes takes this process down; on Ray that is one worker, whose
task is repeated, and the video fails when that has happened often enough.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator
from contextlib import closing
from pathlib import Path

from kinodex.pipeline.decoding.pyav_reader import PyavReader
from kinodex.pipeline.decoding.readers import Span
from kinodex.pipeline.decoding.spans import split_video
from kinodex.pipeline.gpu import GpuReader
from kinodex.pipeline.images import jpeg
from kinodex.pipeline.sample import (
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
            while True:
                with stopwatch(seconds, "decode"):
                    batch = next(batches, None)
                if batch is None:
                    break
                count += len(batch.numbers)
                with stopwatch(seconds, "jpeg"):
                    encoded = [jpeg(rgb, settings.jpeg_side_px, settings.jpeg_quality) for rgb in batch.images]
                rows = zip(batch.numbers, batch.times_s, encoded, batch.inputs, strict=True)
                yield [SampledFrame(number, time_s, *made, each) for number, time_s, made, each in rows]
            summary = summarize(chunk, video, count, seconds)
        yield with_subtitles(summary, chunk)

    def close(self) -> None:
        """Do nothing: no state is held between two chunks."""
