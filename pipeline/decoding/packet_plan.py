"""What a decoder has to be given to show the frames that are wanted, known before anything is decoded.

A first pass only demuxes: it costs a few microseconds a packet. The presentation times of all packets tell which
frame is on the screen at each sample instant. Of each group of pictures only the packets up to its last wanted
one are needed, and of these a frame that no other refers to only if it is wanted itself. Frames decoded so are
the same to the last bit.

A group may be decoded alone if everything sent before its key frame is also shown before it. Pictures sent after
a key frame but shown before it (leading pictures of an open group: H.264 recovery points, 7.4.1.2.4 and D.2.8 of
ITU-T H.264; RASL and RADL pictures, 3.1 of ITU-T H.265) need the group before; if they are wanted it is decoded
whole, if they are not, no later picture refers to them and they are left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pipeline.decoding.timestamps import GAP_TO_BELIEVE_S, duration_s, time_base

if TYPE_CHECKING:
    from av import Packet
    from av.video.stream import VideoStream

NO_TIME = -(2**63)
_ROW = np.dtype([("pts", "i8"), ("dts", "i8"), ("duration", "i8"), ("key", "?"), ("hidden", "?")])


class PlanViolated(Exception):
    """A video is not what its packets promise; everything has to be decoded. Never leaves the room."""


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
        """Presentation times of all frames that are shown, in order."""
        return np.sort(self.pts[~self.hidden])

    def breaks(self) -> NDArray[np.int64]:
        """Indices of the packets where a decoder may start afresh: the first, and key frames after all before them."""
        latest_before = np.maximum.accumulate(self.pts)[:-1]
        fresh = self.key[1:] & (self.pts[1:] > latest_before)
        return np.concatenate([[0], np.flatnonzero(fresh) + 1])

    def has_open_groups(self) -> bool:
        """Whether pictures are shown before a key frame that is sent before them."""
        key_time = np.maximum.accumulate(np.where(self.key, self.pts, self.pts.min()))
        return bool((self.pts < key_time).any())


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do with each packet, arrays `[n]`, and what has to come of it.

    `sent`: the decoder is given it. `wanted`: its frame is, so that it must not be skipped. `fresh`: the decoder
    is emptied and starts anew with it. `numbers`: presentation time to sample number, in order of time.
    """

    pts: NDArray[np.int64]
    sent: NDArray[np.bool_]
    wanted: NDArray[np.bool_]
    fresh: NDArray[np.bool_]
    numbers: dict[int, int]


def list_packets(packets: Iterable[Packet[VideoStream]], stream: VideoStream) -> Packets:
    """Demux all of `packets`, which are of `stream`.

    Raises:
        SurpriseError: timestamps are missing, double or jump, or a packet is damaged, so that no plan can be made.
    """
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
    end = int(last["pts"]) + duration_s(int(last["duration"]), base, stream.average_rate) / base
    return Packets(table["pts"].copy(), table["key"].copy(), table["hidden"].copy(), end)


def plan_samples(packets: Packets, start: int, rate: Fraction, first: int, until: int | None) -> Plan:
    """What to decode for the samples among the frames with presentation times in `[first, until)`.

    Args:
        packets: of the whole stream; or of a part of it that begins at a break and holds all frames of the range.
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
    wanted = np.isin(packets.pts, shown[is_sample]) & ~packets.hidden
    sent, fresh = _sent(packets, wanted, alone=first != start)
    by_time = dict(zip(shown[is_sample].tolist(), numbers[is_sample], strict=True))
    return Plan(packets.pts, sent, wanted, fresh, by_time)


def first_number(pts: int, start: int, rate: Fraction) -> int:
    """The first sample instant at or after `pts`; arguments as in `plan_samples`."""
    return math.ceil((pts - start) * rate)


def _sent(packets: Packets, wanted: NDArray[np.bool_], alone: bool) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """(`Plan.sent`, `Plan.fresh`): of each group the packets up to its last wanted one.

    With `alone` the packets do not begin at the beginning of the stream.
    """
    sent, fresh = np.zeros(len(packets), bool), np.zeros(len(packets), bool)
    begins = packets.breaks().tolist()
    ends = [*begins[1:], len(packets)]
    next_needs_this = False
    for begin, end in zip(reversed(begins), reversed(ends), strict=True):
        leading = packets.pts[begin:end] < packets.pts[begin]
        hits = np.flatnonzero(wanted[begin:end])
        stop = end if next_needs_this else begin + int(hits[-1]) + 1 if len(hits) else begin
        sent[begin:stop] = True
        next_needs_this = begin > 0 and bool((leading & wanted[begin:end]).any())
    fresh[0] = alone
    for begin in begins[1:]:
        if sent[begin] and not sent[begin - 1]:
            fresh[begin] = True
    for begin, end in zip(begins, ends, strict=True):
        if fresh[begin]:
            sent[begin:end] &= packets.pts[begin:end] >= packets.pts[begin]
    return sent, fresh
