"""The reference decoder: PyAV (FFmpeg), exact on everything, whole or by spans.

`pipeline.decoding.packet_plan` says which packets the samples need; no other is decoded. Where no plan can be made, or
the frames do not come out as planned, everything is decoded. Damage: a packet that cannot be read or decoded is counted
and left out, and what follows it is still used.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.decoding.base import Span, SpanDamaged, TimedFrame
from pipeline.decoding.packet_plan import PacketPlan, Packets, PlanViolated, demux_span, list_packets, plan_samples
from pipeline.decoding.video_stream import (
    SentTimes,
    choose_stream,
    duration_s,
    last_duration,
    monotonic_frames,
    open_container,
    read_metadata,
    time_base,
)
from pipeline.errors import NothingDecodes
from pipeline.images.convert import display_size

if TYPE_CHECKING:
    from av import Packet, VideoFrame
    from av.container import InputContainer
    from av.video.stream import VideoStream

FRUITLESS_READS = 32  # demuxer errors in a row before the rest of the file is given up
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
        with self.open_stream() as (container, stream), closing(self._all_frames(container, stream)) as frames:
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
        """Open the file and choose its video stream."""
        with open_container(self.path, self.name, self._playlist) as container:
            stream = choose_stream(container, self.name)
            stream.codec_context.thread_count = 1  # the other cores embed, or decode other videos
            yield container, stream

    def packets(self, span: Span | None = None) -> Packets:
        """List the packets of the video or of a span. Raises PlanViolated where they allow no plan."""
        with self.open_stream() as (container, stream):
            return list_packets(demux_span(container, stream, span, self.first_pts), stream)

    @property
    def first_pts(self) -> int:
        """Presentation time of the first frame in units of the time base."""
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

    def _planned_samples(self, plan: PacketPlan, span: Span | None) -> Iterator[TimedFrame]:
        self.decode_errors = 0
        count, latest = 0, -math.inf
        with self.open_stream() as (container, stream):
            for frame in _planned_frames(demux_span(container, stream, span, self.first_pts), stream, plan):
                frame.time_base, pts = self.base, frame.pts or 0  # PyAV forgets the former when a decoder drains
                if pts <= latest:
                    raise PlanViolated("frames come in another order than their times")
                latest, number = pts, plan.numbers.get(pts)
                if number is not None:
                    count += 1
                    yield TimedFrame(number, float(pts * self.base), frame)
        if count < len(plan.numbers):
            raise PlanViolated("fewer frames come out than there are packets")

    def _all_samples(self, rate: Fraction) -> Iterator[TimedFrame]:
        self.decode_errors = 0
        with self.open_stream() as (container, stream):
            frames = monotonic_frames(self._all_frames(container, stream), stream)
            time, shown = next(frames)
            for next_time, next_frame in frames:
                number = self._sample_number(time, next_time, rate)
                if number is not None:
                    yield TimedFrame(number, float(time), shown)
                time, shown = next_time, next_frame
            ticks = last_duration(stream, shown.pts, shown.duration, self._sent)
            end = time + duration_s(ticks, self.base, stream.average_rate)
            number = self._sample_number(time, end, rate)
            if number is not None:
                yield TimedFrame(number, float(time), shown)
        self.end_s = float(end)

    def _sample_number(self, time: Fraction, until: Fraction, rate: Fraction) -> int | None:
        """Find the first `k` whose instant `start + k / rate` lies in `[time, until)`, if there is one."""
        number = math.ceil((time - self.start) * rate)
        return number if number < (until - self.start) * rate else None

    def _all_frames(self, container: InputContainer, stream: VideoStream) -> Generator[VideoFrame, None, None]:
        """Yield every frame that decodes."""
        from av import FFmpegError

        for packet in self._all_packets(container, stream):
            try:
                frames = stream.decode(packet)
            except FFmpegError:
                self.decode_errors += 1
                continue
            for frame in frames:
                self.decode_errors += frame.is_corrupt
                yield frame

    def _all_packets(self, container: InputContainer, stream: VideoStream) -> Iterator[Packet[VideoStream] | None]:
        """Yield the packets of the stream to its end, then an empty one that drains the decoder."""
        from av import FFmpegError

        fruitless, self._sent = 0, SentTimes()
        while fruitless < FRUITLESS_READS:
            try:
                for packet in container.demux(stream):
                    fruitless = 0
                    self._sent.add(packet.pts)
                    yield packet
                return
            except FFmpegError:
                self.decode_errors += 1
                fruitless += 1
        yield None


def _planned_frames(
    packets: Iterator[Packet[VideoStream]], stream: VideoStream, plan: PacketPlan
) -> Iterator[VideoFrame]:
    """Decode the packets that the plan sends.

    Raises:
        PlanViolated: the file or a frame is damaged, or a packet marked as a key frame is none.
    """
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
            for frame in _check_frames(stream.decode(packet), due):
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
