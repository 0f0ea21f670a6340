"""Decode one video and hand out the frame that is shown at each sample instant, with its exact time.

`pipeline.clock` says what a frame's time is. Damage: a packet that cannot be read or decoded is counted and
left out, and what follows it is still used.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline import skipping
from pipeline.clock import duration_s, time_base, timed
from pipeline.container import choose_stream, open_container, read_facts
from pipeline.errors import NothingDecodes
from pipeline.facts import VideoFacts

if TYPE_CHECKING:
    from av import Packet, VideoFrame
    from av.video.stream import VideoStream

FRUITLESS_READS = 32  # demuxer errors in a row before the rest of the file is given up


@dataclass(frozen=True, slots=True)
class Sample:
    """The frame shown at instant `number / fps` after the start, at presentation time `time_s`."""

    number: int
    time_s: float
    frame: VideoFrame


@contextmanager
def open_video(path: Path, name: str | None = None) -> Iterator[VideoReader]:
    """Open `path` for one pass over its frames; messages call it `name`.

    Raises:
        VideoError: there is nothing to decode in it; see `pipeline.errors`.
        SourceMissing, SourceForbidden: the file cannot be read.
    """
    video = VideoReader(path, name or path.name)
    try:
        yield video
    finally:
        video.close()


def probe(path: Path, name: str | None = None) -> VideoFacts:
    """The facts of a video: opens it, decodes one frame, closes it. Raises as `open_video`."""
    with open_video(path, name) as video:
        return video.facts


class VideoReader:
    """One pass over one video. `decode_errors`, `start_s` and `end_s` are final when `samples` has ended."""

    def __init__(self, path: Path, name: str) -> None:
        self._path, self._name = path, name
        self._rate = Fraction(0)  # samples a second, once asked for
        self._begin(may_skip=True)
        self.facts = read_facts(self._container, self._stream, self._first[1])
        self.start_s = self.end_s = float(self._first[0])

    def close(self) -> None:
        """Close the file; frames already given stay valid."""
        self._timed_frames.close()  # else it and this object keep each other, and the decoder, in memory
        self._container.close()

    def samples(self, fps: float) -> Generator[Sample, None, None]:
        """Each distinct frame that is shown at one of the instants `start + k / fps`, in order, once.

        The frame of an instant is the last one whose time is not after it; the last frame is shown for its
        own duration. `number` is the first `k` that shows the frame. Costs nothing per instant, so
        gaps of any length are free.

        A decoder hides damage with what it decoded before, so what was skipped then matters: on the first
        damage after a skip the pass is made again without skipping, past the samples already given.
        """
        self._rate = Fraction(fps).limit_denominator(1_000_000)
        given = -1
        while True:
            try:
                for sample in self._samples():
                    if sample.number > given:
                        given = sample.number
                        yield sample
                return
            except _DamageAfterSkippingError:
                self.close()
                self._begin(may_skip=False)

    def _begin(self, may_skip: bool) -> None:
        """Open the file and decode its first frame."""
        with ExitStack() as on_failure:
            self._container = on_failure.enter_context(open_container(self._path, self._name))
            self._stream = choose_stream(self._container, self._name)
            codec = self._stream.codec_context.codec.canonical_name
            self._may_skip, self._has_skipped = may_skip and codec in skipping.CODECS, False
            self.decode_errors = 0
            self._timed_frames = timed(self._frames(), self._stream)
            first = next(self._timed_frames, None)
            if first is None:
                raise NothingDecodes(
                    f"{self._name}: not one frame of its {codec} stream decodes ({self.decode_errors} errors); "
                    "make the file anew from its source"
                )
            self._first = first
            on_failure.pop_all()

    def _samples(self) -> Iterator[Sample]:
        time, shown = self._first
        for next_time, next_frame in self._timed_frames:
            number = self._instant(time, next_time)
            if number is not None:
                yield Sample(number, float(time), shown)
            time, shown = next_time, next_frame
        end = time + duration_s(shown, self._stream)
        number = self._instant(time, end)
        if number is not None:
            yield Sample(number, float(time), shown)
        self.end_s = float(end)

    def _instant(self, time: Fraction, until: Fraction) -> int | None:
        """The first `k` of which the instant `start + k / rate` is in `[time, until)`, if there is one."""
        rate, start = self._rate, self._first[0]
        number = math.ceil((time - start) * rate)
        return number if number < (until - start) * rate else None

    def _is_shown(self, pts: int, until_pts: int) -> bool:
        """Whether a frame with this range of presentation times is a sample; true until it is known.

        `_instant` in whole numbers: this is asked for every packet.
        """
        if not self._rate:
            return True
        base = time_base(self._stream)
        start, (steps, ticks) = int(self._first[0] / base), (self._rate * base).as_integer_ratio()
        number = -((start - pts) * steps // ticks)
        return number * ticks < (until_pts - start) * steps

    def _frames(self) -> Iterator[VideoFrame]:
        """Every frame that decodes, but for those that are safe to skip."""
        from av import FFmpegError

        context = self._stream.codec_context
        context.thread_count = 1  # the other cores embed, or decode other videos
        packets = skipping.needed(self._packets(), self._is_shown) if self._may_skip else self._all_packets()
        for packet, is_needed in packets:
            skip = self._may_skip and not is_needed
            self._has_skipped |= skip
            context.skip_frame = "NONREF" if skip else "DEFAULT"
            try:
                frames = self._stream.decode(packet)
            except FFmpegError:
                self._count_damage()
                continue
            for frame in frames:
                if frame.is_corrupt:
                    self._count_damage()
                yield frame

    def _all_packets(self) -> Iterator[tuple[Packet[VideoStream] | None, bool]]:
        return ((packet, True) for packet in self._packets())

    def _packets(self) -> Iterator[Packet[VideoStream] | None]:
        """Packets of the stream to its end, then an empty one that drains the decoder."""
        from av import FFmpegError

        fruitless = 0
        while fruitless < FRUITLESS_READS:
            try:
                for packet in self._container.demux(self._stream):
                    fruitless = 0
                    yield packet
                return
            except FFmpegError:
                self._count_damage()
                fruitless += 1
        yield None

    def _count_damage(self) -> None:
        self.decode_errors += 1
        self._may_skip = False
        if self._has_skipped:
            raise _DamageAfterSkippingError


class _DamageAfterSkippingError(Exception):
    """Never leaves this module."""
