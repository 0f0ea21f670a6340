"""The reference decoder: PyAV (FFmpeg), exact on everything, whole or by spans.

A plan says which packets the samples need; no other is decoded. Where no plan can be made, or the frames do not come
out as planned, everything is decoded. Damage: a packet that cannot be read or decoded is counted and left out, and what
follows it is still used.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kinodex.pipeline.decoding.aspect import PixelAspects
from kinodex.pipeline.decoding.clock import UNBROKEN, Clock, file_clock, packets_to_end
from kinodex.pipeline.decoding.stream import (
    GAP_TO_BELIEVE_S,
    SentTimes,
    Span,
    SpanDamaged,
    TimedFrame,
    choose_stream,
    duration_s,
    last_duration,
    monotonic_frames,
    open_container,
    read_metadata,
    time_base,
)
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
            closing(self._all_frames(container, stream, UNBROKEN)) as frames,
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
            sent, restart = _packets_to_send(packets, wanted, alone=False)
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
        self, container: InputContainer, stream: VideoStream, clock: Clock
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
        self, container: InputContainer, stream: VideoStream, clock: Clock
    ) -> Iterator[Packet[VideoStream] | None]:
        """Yield the packets of the stream to its end, then an empty one that drains the decoder."""
        self._sent = SentTimes()
        packet = None
        for packet in packets_to_end(clock, container, stream, self._count_error):
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


# Plan which packets a decoder needs for the sampled frames, before anything is decoded.
#
# A first pass only demuxes: it costs a few microseconds a packet. The presentation times of all packets say which
# frame is on the screen at each sample instant. Of each group of pictures only the packets up to its last sampled
# one are needed, and of these a frame that no other refers to only if it is sampled itself. The decoded frames are
# the same as those of a full pass, to the last bit.
#
# A group may be decoded alone if everything sent before its key frame is also shown before it. Pictures sent after
# a key frame but shown before it (leading pictures of an open group: H.264 recovery points, 7.4.1.2.4 and D.2.8 of
# ITU-T H.264; RASL and RADL pictures, 3.1 of ITU-T H.265) need the group before; if they are sampled it is
# decoded whole, if they are not, no later picture refers to them and they are left out.

NO_TIME = -(2**63)
SEEK_BACK_S = (0, 20)  # a seek by decoding times can end up behind the key frame; then from further ahead
_ROW = np.dtype([("pts", "i8"), ("dts", "i8"), ("duration", "i8"), ("key", "?"), ("hidden", "?")])


class PlanViolated(Exception):
    """A video whose frames differ from what its packets promise; all of it has to be decoded. Never leaves the room."""


@dataclass(frozen=True, slots=True)
class Packets:
    """All packets of a stream, or of a part of it, in the order of decoding; arrays `[n]`, in units of its time base.

    `hidden` frames are decoded but never shown (an edit list leaves them out). `end` is when the last frame's own
    duration is over.
    """

    pts: NDArray[np.int64]
    key: NDArray[np.bool_]
    hidden: NDArray[np.bool_]
    end: Fraction

    def __len__(self) -> int:
        return len(self.pts)

    def shown(self) -> NDArray[np.int64]:
        return np.sort(self.pts[~self.hidden])

    def restart_points(self) -> NDArray[np.int64]:
        """Find the packets at which an emptied decoder may start: the first, and key frames shown after all before."""
        latest_before = np.maximum.accumulate(self.pts)[:-1]
        restarts = self.key[1:] & (self.pts[1:] > latest_before)
        return np.concatenate([[0], np.flatnonzero(restarts) + 1])

    def has_open_groups(self) -> bool:
        """Check for pictures that are shown before a key frame which is sent before them."""
        key_time = np.maximum.accumulate(np.where(self.key, self.pts, self.pts.min()))
        return bool((self.pts < key_time).any())


@dataclass(frozen=True, slots=True)
class PacketPlan:
    """Instructions for each packet, arrays `[n]`, and the samples that must come out.

    `sent`: the decoder gets it. `sampled`: its frame is a sample, so that it must not be skipped. `restart`: the
    decoder is emptied before it. `numbers`: presentation time to sample number, in order of time.
    """

    pts: NDArray[np.int64]
    sent: NDArray[np.bool_]
    sampled: NDArray[np.bool_]
    restart: NDArray[np.bool_]
    numbers: dict[int, int]


def demux_span(
    container: InputContainer, stream: VideoStream, span: Span | None, start: int
) -> Iterator[Packet[VideoStream]]:
    """Demux the packets that a span needs, or all; `start` is the time of the first frame. Raises PlanViolated."""
    if span is None or span.first_pts == start:
        packets = container.demux(stream)
    else:
        packets = _demux_from_key(container, stream, span.first_pts)
    if span is None or span.until_pts is None:
        yield from packets
        return
    in_last_group = False
    for packet in packets:
        if packet.pts is not None:
            if in_last_group and packet.pts > span.until_pts:
                return
            in_last_group |= packet.pts == span.until_pts
        yield packet


def _demux_from_key(container: InputContainer, stream: VideoStream, pts: int) -> Iterator[Packet[VideoStream]]:
    for back_s in SEEK_BACK_S:
        container.seek(pts - round(back_s / time_base(stream)), stream=stream)
        found = False
        for packet in container.demux(stream):
            found |= packet.is_keyframe and packet.pts == pts
            if found:
                yield packet
            elif packet.is_keyframe and packet.pts is not None and packet.pts > pts:
                break
        if found:
            return
    raise PlanViolated("seeking does not find a key frame again")


def list_packets(packets: Iterable[Packet[VideoStream]], stream: VideoStream) -> Packets:
    """Demux all `packets` of `stream`; raises PlanViolated for times that are missing, double or jump, or damage."""
    from av import FFmpegError

    def rows() -> Iterator[tuple[int, int, int, bool, bool]]:
        for packet in packets:
            if not packet.size:
                continue
            if packet.pts is None or packet.is_corrupt:
                raise PlanViolated("packets without presentation times, or damaged ones")
            dts = NO_TIME if packet.dts is None else packet.dts
            yield packet.pts, dts, packet.duration or 0, packet.is_keyframe, packet.is_discard

    try:
        table = np.fromiter(rows(), dtype=_ROW)
    except FFmpegError as error:
        raise PlanViolated(f"the file is damaged ({error.strerror})") from error
    base, shown = time_base(stream), np.sort(table["pts"][~table["hidden"]])
    steps = np.diff(shown)
    if not len(steps) or steps.min() <= 0 or int(steps.max()) * base > GAP_TO_BELIEVE_S:
        raise PlanViolated("presentation times that are double or jump, or fewer than two frames")
    if (np.diff(table["dts"][table["dts"] != NO_TIME]) <= 0).any():
        raise PlanViolated("decoding times that do not rise")
    last = table[table["pts"] == shown[-1]][0]
    sent = SentTimes(int(table[-1]["pts"]), int(shown[-1]), int(shown[-2]))
    ticks = last_duration(stream, int(last["pts"]), int(last["duration"]), sent)
    end = int(last["pts"]) + duration_s(ticks, base, stream.average_rate) / base
    return Packets(table["pts"].copy(), table["key"].copy(), table["hidden"].copy(), end)


def plan_samples(packets: Packets, start: int, rate: Fraction, first: int, until: int | None) -> PacketPlan:
    """Plan the decoding of the samples among the frames with presentation times in `[first, until)`.

    Args:
        packets: of the whole stream; or of a part that begins at a restart point and holds all frames of the range.
        start: presentation time of the video's first frame, which is sample 0.
        rate: samples per unit of the time base.
        until: None for the end of the video.
    """
    shown = packets.shown()
    ends = np.array([*shown[1:].tolist(), packets.end], dtype=object)
    chosen = (shown >= first) if until is None else (shown >= first) & (shown < until)
    shown, ends = shown[chosen], ends[chosen]
    if not len(shown) or shown[0] != first:
        raise PlanViolated("the first frame is not where the packets have it")
    steps, ticks = rate.as_integer_ratio()
    # Objects: whole numbers of any size. The products exceed 64 bits where time bases are fine.
    numbers = -((start - shown.astype(object)) * steps // ticks)
    is_sample = (numbers * ticks < (ends - start) * steps).astype(bool)
    sampled = np.isin(packets.pts, shown[is_sample]) & ~packets.hidden
    sent, restart = _packets_to_send(packets, sampled, alone=first != start)
    by_time = dict(zip(shown[is_sample].tolist(), numbers[is_sample], strict=True))
    return PacketPlan(packets.pts, sent, sampled, restart, by_time)


def first_number(pts: int, start: int, rate: Fraction) -> int:
    """Find the number of the first sample instant at or after `pts`; arguments as in `plan_samples`."""
    return math.ceil((pts - start) * rate)


def _packets_to_send(
    packets: Packets, sampled: NDArray[np.bool_], alone: bool
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Choose `PacketPlan.sent` and `PacketPlan.restart`: of each group the packets up to its last sampled one.

    With `alone` the packets do not begin at the beginning of the stream.
    """
    sent, restart = np.zeros(len(packets), bool), np.zeros(len(packets), bool)
    begins = packets.restart_points().tolist()
    ends = [*begins[1:], len(packets)]
    next_needs_this = False
    for begin, end in zip(reversed(begins), reversed(ends), strict=True):
        leading = packets.pts[begin:end] < packets.pts[begin]
        hits = np.flatnonzero(sampled[begin:end])
        stop = end if next_needs_this else begin + int(hits[-1]) + 1 if len(hits) else begin
        sent[begin:stop] = True
        next_needs_this = begin > 0 and bool((leading & sampled[begin:end]).any())
    restart[0] = alone
    for begin in begins[1:]:
        if sent[begin] and not sent[begin - 1]:
            restart[begin] = True
    for begin, end in zip(begins, ends, strict=True):
        if restart[begin]:
            sent[begin:end] &= packets.pts[begin:end] >= packets.pts[begin]
    return sent, restart
