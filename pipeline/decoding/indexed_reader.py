"""A video read by a decoder that picks frames by number, held to what the packets say.

The packets tell which frames are wanted and when they are shown, as for PyAV, so times are exact and the same
whoever decodes. A decoder that counts frames otherwise, puts one at another time or size, or fails, is given up,
and PyAV goes on behind the last sample given.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

from pipeline.decoding.frame_index import index_frames
from pipeline.decoding.open import Sample
from pipeline.decoding.packet_plan import PlanViolated
from pipeline.decoding.pyav_reader import PyavReader
from pipeline.decoding.select import PickError, choose, source, unfit
from pipeline.decoding.spans import Span


class PickedReader:
    """A `pipeline.decoding.open.VideoReader` by any decoder."""

    def __init__(self, exact: PyavReader, decoder: str) -> None:
        self._exact, self._asked = exact, decoder
        self.facts, self.start_s, self.end_s = exact.facts, exact.start_s, exact.end_s
        self.decode_errors = 0
        self.decoder = decoder
        self.fell_back: str | None = None

    def close(self) -> None:
        """See `pipeline.decoding.open.VideoReader`."""
        self._exact.close()

    def samples(self, fps: float, span: Span | None = None) -> Generator[Sample, None, None]:
        """See `pipeline.decoding.open.VideoReader`."""
        self.decoder, self.fell_back = choose(self._asked), None
        given = -1
        if self.decoder != "pyav":
            try:
                for sample in self._picked(fps, span):
                    given = sample.number
                    yield sample
                return
            except (PickError, PlanViolated) as error:
                self.fell_back = f"{self.decoder}: {error}"
                self.decoder = "pyav"
        for sample in self._exact.samples(fps, span):
            if sample.number > given:
                yield sample
        self.end_s = self._exact.end_s
        self.decode_errors += self._exact.decode_errors

    def _picked(self, fps: float, span: Span | None) -> Iterator[Sample]:
        from av import VideoFrame

        if reason := unfit(self.decoder, self.facts):
            raise PickError(reason)
        picks = index_frames(self._exact, fps, span)
        if self.decoder == "decord" and picks.has_open_groups:
            raise PickError("open groups of pictures: it may show another frame than it says")
        frames = source(self.decoder)(self._exact.path, self.facts.stream_index)
        picks.expect_count(len(frames))
        for batch in picks.batches():
            times, pictures = frames(batch.indices)
            batch.expect(times, pictures.shape[2], pictures.shape[1])
            for number, time_s, picture in zip(batch.numbers, batch.times_s, pictures, strict=True):
                yield Sample(number, time_s, VideoFrame.from_ndarray(picture, format="rgb24"))
        self.end_s = picks.end_s
