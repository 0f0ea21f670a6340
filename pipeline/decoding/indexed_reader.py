"""A video read by a decoder that takes frames by number, checked against the packets."""

from __future__ import annotations

from collections.abc import Generator, Iterator

from kinodex.pipeline.decoding.decord_reader import decord_frames
from kinodex.pipeline.decoding.frame_index import index_frames, reason_unfit
from kinodex.pipeline.decoding.packet_plan import PlanViolated
from kinodex.pipeline.decoding.pyav_reader import PyavReader
from kinodex.pipeline.decoding.readers import PickError, Span, TimedFrame
from kinodex.pipeline.decoding.torchcodec_reader import torchcodec_frames


class IndexedReader:
    """A `VideoReader` by a decoder other than PyAV."""

    def __init__(self, exact: PyavReader, decoder: str) -> None:
        self._exact, self._requested = exact, decoder
        self.metadata, self.start_s, self.end_s = exact.metadata, exact.start_s, exact.end_s
        self.decode_errors = 0
        self.decoder = decoder
        self.fell_back: str | None = None

    def close(self) -> None:
        self._exact.close()

    def samples(self, fps: float, span: Span | None = None) -> Generator[TimedFrame, None, None]:
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
        path, stream_index = self._exact.path, self.metadata.stream_index
        if self.decoder == "decord":
            count, decode = decord_frames(path)
        else:
            count, decode = torchcodec_frames(path, stream_index, "cuda" if self.decoder == "nvdec" else "cpu")
        index.check_count(count)
        for batch in index.batches():
            times, images = decode(batch.indices)
            batch.check_frames(times, images.shape[2], images.shape[1])
            for number, time_s, image in zip(batch.numbers, batch.times_s, images, strict=True):
                yield TimedFrame(number, time_s, VideoFrame.from_ndarray(image, format="rgb24"))
        self.end_s = index.end_s
