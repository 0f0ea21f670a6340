"""A video read by a decoder that takes frames by number, checked against the packets.

The packets say which frames are needed and when they are shown, as for PyAV, so times are exact and the same with every
decoder. If a decoder counts frames otherwise, returns one of another time or size, or fails, PyAV reads the rest, from
the first sample that is still missing.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path

from pipeline.decoding.base import FrameSource, PickError, Span, TimedFrame
from pipeline.decoding.frame_index import index_frames, reason_unfit
from pipeline.decoding.packet_plan import PlanViolated
from pipeline.decoding.pyav_reader import PyavReader


class IndexedReader:
    """A `VideoReader` by a decoder other than PyAV."""

    def __init__(self, exact: PyavReader, decoder: str) -> None:
        self._exact, self._requested = exact, decoder
        self.metadata, self.start_s, self.end_s = exact.metadata, exact.start_s, exact.end_s
        self.decode_errors = 0
        self.decoder = decoder
        self.fell_back: str | None = None

    def close(self) -> None:
        """See `VideoReader`."""
        self._exact.close()

    def samples(self, fps: float, span: Span | None = None) -> Generator[TimedFrame, None, None]:
        """See `VideoReader`."""
        self.decoder, self.fell_back = self._requested, None
        last_number = -1
        try:
            for sample in self._indexed_samples(fps, span):
                last_number = sample.number
                yield sample
            return
        except (PickError, PlanViolated) as error:
            self.fell_back = f"{self.decoder}: {error}"
            self.decoder = "pyav"
        for sample in self._exact.samples(fps, span):
            if sample.number > last_number:
                yield sample
        self.end_s = self._exact.end_s
        self.decode_errors += self._exact.decode_errors

    def _indexed_samples(self, fps: float, span: Span | None) -> Iterator[TimedFrame]:
        from av import VideoFrame

        if reason := reason_unfit(self.decoder, self.metadata):
            raise PickError(reason)
        index = index_frames(self._exact, fps, span)
        if self.decoder == "decord" and index.has_open_groups:
            raise PickError("open groups of pictures: it may show another frame than it says")
        frames = _open_source(self.decoder, self._exact.path, self.metadata.stream_index)
        index.check_count(len(frames))
        for batch in index.batches():
            times, images = frames(batch.indices)
            batch.check_frames(times, images.shape[2], images.shape[1])
            for number, time_s, image in zip(batch.numbers, batch.times_s, images, strict=True):
                yield TimedFrame(number, time_s, VideoFrame.from_ndarray(image, format="rgb24"))
        self.end_s = index.end_s


def _open_source(decoder: str, path: Path, stream_index: int) -> FrameSource:
    """Open a stream with a decoder other than PyAV."""
    if decoder == "decord":
        from pipeline.decoding.decord_backend import DecordFrames

        return DecordFrames(path)
    from pipeline.decoding.torchcodec_backend import TorchcodecFrames

    return TorchcodecFrames(path, stream_index, device="cuda" if decoder == "nvdec" else "cpu")
