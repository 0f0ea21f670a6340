"""Read pieces onto the device that embeds them, in this process: decoded, scaled and cut to the model's input there.

Stands where `pipeline.sampling.sandbox.Reader` stands. A decoder that crashes takes this process down; on Ray that is one worker,
whose task is done again, and the video fails when that has happened often enough.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator
from contextlib import closing
from pathlib import Path

from pipeline.decoding.gpu_reader import DeviceBatch, DeviceReader
from pipeline.decoding.pyav_reader import PyavReader
from pipeline.decoding.spans import Span, cut
from pipeline.images.convert import jpeg
from pipeline.sampling.sample import summarize, timed
from pipeline.sampling.types import Chunk, PieceSummary, SampledFrame, SamplingSettings

Seconds = dict[str, float]


class DevicePieces:
    """Reads one piece at a time onto `device` ("cuda", "cuda:1"; "cpu" works too)."""

    def __init__(self, device: str) -> None:
        self._device = device

    def cut(self, chunk: Chunk, reading: SamplingSettings) -> tuple[Span, ...]:
        """See Reader.cut."""
        return cut(Path(chunk.identified.path), chunk.identified.source.uri, reading.fps, reading.cut_s)

    def read(self, chunk: Chunk, reading: SamplingSettings) -> Generator[list[SampledFrame] | PieceSummary, None, None]:
        """See Reader.read; the model inputs are tensors on the device."""
        source, path = chunk.identified.source, Path(chunk.identified.path)
        seconds: Seconds = defaultdict(float)
        given = 0
        with closing(PyavReader(path, source.uri)) as exact:
            video = DeviceReader(exact, self._device)
            batches = video.batches(reading.fps, reading.input, reading.jpeg_side_px, chunk.span)
            while (batch := _next(batches, seconds)) is not None:
                given += len(batch.numbers)
                with timed(seconds, "jpeg"):
                    pictures = _pictures(batch, reading)
                yield pictures
            summary = summarize(chunk, video, given, seconds)
        yield summary

    def close(self) -> None:
        """Nothing is kept between two pieces."""


def _next(batches: Generator[DeviceBatch, None, None], seconds: Seconds) -> DeviceBatch | None:
    with timed(seconds, "decode"):
        return next(batches, None)


def _pictures(batch: DeviceBatch, reading: SamplingSettings) -> list[SampledFrame]:
    encoded = [jpeg(rgb, reading.jpeg_side_px, reading.jpeg_quality) for rgb in batch.pictures]
    return [
        SampledFrame(number, time_s, data, width_px, height_px, model_input)
        for number, time_s, (data, width_px, height_px), model_input in zip(
            batch.numbers, batch.times_s, encoded, batch.inputs, strict=True
        )
    ]
