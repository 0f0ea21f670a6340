"""The reference decoder: PyAV (FFmpeg), exact on everything, whole or by spans.

A plan says which packets the samples need; no other is decoded. Where no plan can be made, or the frames do not come
out as planned, everything is decoded. Damage: a packet that cannot be read or decoded is counted and left out, and what
follows it is still used.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from kinodex.pipeline.decoding.clock import Clock, file_clock
from kinodex.pipeline.decoding.frame_times import SentTimes, duration_s, last_duration, monotonic_frames, time_base
from kinodex.pipeline.decoding.packet_plan import (
    PacketPlan,
    Packets,
    PlanViolated,
    demux_span,
    list_packets,
    packets_to_send,
    plan_samples,
)
from kinodex.pipeline.decoding.pixel_aspects import PixelAspects
from kinodex.pipeline.decoding.readers import Span, SpanDamaged, TimedFrame
from kinodex.pipeline.decoding.stream import choose_stream, open_container, packets_to_end, read_metadata
from kinodex.pipeline.errors import NothingDecodes
from kinodex.pipeline.images import display_size

if TYPE_CHECKING:
    from av import Packet, VideoFrame
    from av.container import InputContainer
    from av.video.stream import VideoStream

# Codecs that write into the stream which frames are no reference; elsewhere skipping them gains little or nothing.
SKIPPING_CODECS = frozenset({"h264", "hevc"})


class PyavReader:
    """A `VideoReader` by PyAV. Holds no file open between passes.

    `start` is `start_s` exactly, `base` the unit of timestamps in seconds, `size_px` width and height of an upright
    frame before its pixels are made square.
    """

    fell_back: str | None = None

    def __init__(self, path: Path, name: str, playlist: bool = False) -> None:
        self.path, self.name, self._playlist = path, name, playlist
        self.decoder, self.decode_errors, self._sent = "pyav", 0, SentTimes()
        self._aspects: PixelAspects
        with (
            self.open_stream() as (container, stream),
            closing(self._all_frames(container, stream, None)) as frames,
        ):
            first = next(monotonic_frames(frames, stream), None)
            if first is None:
                codec = stream.codec_context.codec.canonical_name
                raise NothingDecodes(
                    f"{name}: not one frame of its {codec} stream decodes ({self.decode_errors} errors); "
                    "make the file again from its source"
                )
            self.start, self.base = first[0], time_base(stream)
            self.metadata = read_metadata(container, stream, first[1])
            self.size_px = display_size(first[1], Fraction(1))
            self.start_s = self.end_s = float(self.start)

    def close(self) -> None:
        """Nothing to do: a pass closes its file when it ends or is closed."""

    @contextmanager
    def open_stream(self) -> Iterator[tuple[InputContainer, VideoStream]]:
        with open_container(self.path, self.name, self._playlist) as container:
            stream = choose_stream(container, self.name)
            stream.codec_context.thread_count = 1  # the other cores embed, or decode other videos
            self._aspects = PixelAspects(stream)
            yield container, stream

    def packets(self, span: Span | None = None) -> Packets:
        """List the packets of the video or of a span. Raises PlanViolated where they allow no plan."""
        with self.open_stream() as (container, stream):
            return list_packets(demux_span(container, stream, span, self.first_pts), stream)

    def _clock(self) -> Clock:
        """Return the clock of the file; packets that can be planned never need it."""
        return file_clock(self.path, self.name, self._playlist)

    @property
    def first_pts(self) -> int:
        return round(self.start / self.base)

    def samples(self, fps: float, span: Span | None = None) -> Generator[TimedFrame, None, None]:
        """See `VideoReader`.

        A decoder hides damage with what it decoded before, so packets that the plan left out then matter: on the first
        damage, or frame against the plan, the pass is repeated with everything decoded, after the samples already
        yielded.
        """
        rate = Fraction(fps).limit_denominator(1_000_000)
        last_number = -1
        try:
            first, until = (span.first_pts, span.until_pts) if span else (self.first_pts, None)
            packets = self.packets(span)
            plan = plan_samples(packets, self.first_pts, rate * self.base, first, until)
            for sample in self._planned_samples(plan, span):
                last_number = sample.number
                yield sample
            if until is None:
                self.end_s = float(packets.end * self.base)
            return
        except PlanViolated as violation:
            if span:
                raise SpanDamaged(f"{self.name}: {violation}") from violation
        for sample in self._all_samples(rate):
            if sample.number > last_number:
                yield sample

    def frames_in(self, windows_s: Sequence[tuple[float, float]]) -> Generator[TimedFrame, None, None]:
        """Yield every frame in one of these ranges `[first, last]`, which are apart, numbered by its range."""

        def window_of(time_s: float) -> int | None:
            at = bisect_right(windows_s, (time_s, math.inf)) - 1
            return at if at >= 0 and time_s <= windows_s[at][1] else None

        latest_s = -math.inf
        try:
            packets = self.packets()
            times_s = ((pts, float(pts * self.base)) for pts in packets.shown().tolist())
            numbers = {pts: at for pts, time_s in times_s if (at := window_of(time_s)) is not None}
            wanted = np.isin(packets.pts, list(numbers)) & ~packets.hidden
            sent, restart = packets_to_send(packets, wanted, alone=False)
            plan = PacketPlan(packets.pts, sent, wanted, restart, numbers)
            for frame in self._planned_samples(plan, None):
                latest_s = frame.time_s
                yield frame
            return
        except PlanViolated:
            self.decode_errors = 0
        clock = self._clock()
        with self.open_stream() as (container, stream):
            for time, shown in monotonic_frames(self._all_frames(container, stream, clock), stream):
                number = window_of(float(time))
                if number is not None and time > latest_s:
                    yield self._timed(number, time, shown)

    def _timed(self, number: int, time: Fraction, frame: VideoFrame) -> TimedFrame:
        return TimedFrame(number, float(time), frame, self._aspects.of(frame))

    def _planned_samples(self, plan: PacketPlan, span: Span | None) -> Iterator[TimedFrame]:
        self.decode_errors = 0
        count, latest = 0, -math.inf
        with self.open_stream() as (container, stream):
            packets = demux_span(container, stream, span, self.first_pts)
            for frame in _planned_frames(packets, stream, plan, self._aspects):
                frame.time_base, pts = self.base, frame.pts or 0  # PyAV forgets the former when a decoder drains
                if pts <= latest:
                    raise PlanViolated("frames come in another order than their times")
                latest, number = pts, plan.numbers.get(pts)
                if number is not None:
                    count += 1
                    yield self._timed(number, pts * self.base, frame)
        if count < len(plan.numbers):
            raise PlanViolated("fewer frames come out than there are packets")

    def _all_samples(self, rate: Fraction) -> Iterator[TimedFrame]:
        self.decode_errors, clock = 0, self._clock()
        with self.open_stream() as (container, stream):
            frames = monotonic_frames(self._all_frames(container, stream, clock), stream)
            time, shown = next(frames)
            for next_time, next_frame in frames:
                number = self._sample_number(time, next_time, rate)
                if number is not None:
                    yield self._timed(number, time, shown)
                time, shown = next_time, next_frame
            ticks = last_duration(stream, shown.pts, shown.duration, self._sent)
            end = time + duration_s(ticks, self.base, stream.average_rate)
            number = self._sample_number(time, end, rate)
            if number is not None:
                yield self._timed(number, time, shown)
        self.end_s = float(end)

    def _sample_number(self, time: Fraction, until: Fraction, rate: Fraction) -> int | None:
        """Find the first `k` whose instant `start + k / rate` lies in `[time, until)`, if there is one."""
        number = math.ceil((time - self.start) * rate)
        return number if number < (until - self.start) * rate else None

    def _all_frames(
        self, container: InputContainer, stream: VideoStream, clock: Clock | None
    ) -> Generator[VideoFrame, None, None]:
        from av import FFmpegError

        for packet in self._all_packets(container, stream, clock):
            try:
                frames = stream.decode(packet)
            except FFmpegError:
                self.decode_errors += 1
                continue
            self._aspects.sent(packet)
            for frame in frames:
                self.decode_errors += frame.is_corrupt
                yield frame

    def _all_packets(
        self, container: InputContainer, stream: VideoStream, clock: Clock | None
    ) -> Iterator[Packet[VideoStream] | None]:
        """Yield the packets of the stream to its end, then an empty one that drains the decoder."""
        self._sent = SentTimes()
        packet = None
        demux = (lambda: clock.demux(container, stream)) if clock else lambda: container.demux(stream)
        for packet in packets_to_end(demux, self._count_error):
            self._sent.add(packet.pts)
            yield packet
        if packet is None or packet.size:  # the demuxer's last one is empty, unless it gave up
            yield None

    def _count_error(self) -> None:
        self.decode_errors += 1


def _planned_frames(
    packets: Iterator[Packet[VideoStream]], stream: VideoStream, plan: PacketPlan, aspects: PixelAspects
) -> Iterator[VideoFrame]:
    """Decode the packets that the plan sends; raises PlanViolated for damage, or a key frame that is none."""
    from av import FFmpegError

    context = stream.codec_context
    may_skip = context.codec.canonical_name in SKIPPING_CODECS
    due: int | None = None  # an emptied decoder returns the key frame first, else it was no key frame
    try:
        for index, packet in enumerate(packet for packet in packets if packet.size):
            if index >= len(plan.pts) or packet.pts != plan.pts[index]:
                raise PlanViolated("the file changes while it is read")
            if not plan.sent[index]:
                continue
            if plan.restart[index]:
                yield from _check_frames(stream.decode(None), due)
                context.flush_buffers()
                due = packet.pts
            context.skip_frame = "NONREF" if may_skip and not plan.sampled[index] else "DEFAULT"
            frames = _check_frames(stream.decode(packet), due)
            aspects.sent(packet)
            for frame in frames:
                due = None
                yield frame
        yield from _check_frames(stream.decode(None), due)
    except FFmpegError as error:
        raise PlanViolated(f"damage ({error.strerror})") from error


def _check_frames(frames: list[VideoFrame], due: int | None) -> list[VideoFrame]:
    if any(frame.is_corrupt or frame.pts is None for frame in frames):
        raise PlanViolated("a damaged frame")
    if frames and due is not None and frames[0].pts != due:
        raise PlanViolated("a key frame that cannot be decoded by itself")
    return frames
