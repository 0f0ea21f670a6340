"""Plan which packets a decoder needs for the sampled frames, before anything is decoded.

A first pass only demuxes: it costs a few microseconds a packet. The presentation times of all packets say which
frame is on the screen at each sample instant. Of each group of pictures only the packets up to its last sampled
one are needed, and of these a frame that no other refers to only if it is sampled itself. The decoded frames are
the same as those of a full pass, to the last bit.

A group may be decoded alone if everything sent before its key frame is also shown before it. Pictures sent after
a key frame but shown before it (leading pictures of an open group: H.264 recovery points, 7.4.1.2.4 and D.2.8 of
ITU-T H.264; RASL and RADL pictures, 3.1 of ITU-T H.265) need the group before; if they are sampled it is
decoded whole, if they are not, no later picture refers to them and they are left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kinodex.pipeline.decoding.frame_times import GAP_TO_BELIEVE_S, SentTimes, duration_s, last_duration, time_base
from kinodex.pipeline.decoding.readers import Span

if TYPE_CHECKING:
    from av import Packet
    from av.container import InputContainer
    from av.video.stream import VideoStream

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
    sent, restart = packets_to_send(packets, sampled, alone=first != start)
    by_time = dict(zip(shown[is_sample].tolist(), numbers[is_sample], strict=True))
    return PacketPlan(packets.pts, sent, sampled, restart, by_time)


def first_number(pts: int, start: int, rate: Fraction) -> int:
    """Find the number of the first sample instant at or after `pts`; arguments as in `plan_samples`."""
    return math.ceil((pts - start) * rate)


def packets_to_send(
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
