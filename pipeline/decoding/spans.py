"""Parts of a long video that can be decoded each by itself, by different processes.

A span begins with a key frame at which a decoder may start afresh (`pipeline.decoding.packet_plan`) and ends where the next one
begins. What is shown before a key frame but sent after it belongs to the span before, which reads that far. The
samples of all spans together are those of one pass over the whole video, to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pipeline.decoding.container import choose_stream, open_container
from pipeline.decoding.packet_plan import Packets, PlanViolated, first_number, list_packets
from pipeline.decoding.timestamps import time_base

if TYPE_CHECKING:
    from av import Packet
    from av.container import InputContainer
    from av.video.stream import VideoStream

SEEK_BACK_S = (0, 20)  # a search by decoding times can end up behind the key frame; then from further ahead


class SpanDamaged(Exception):
    """A span cannot be had as a whole pass would have it: damage, or timestamps that mislead.

    Says nothing against the video: read it whole, in one piece, and what can be had of it comes out.
    """


@dataclass(frozen=True, slots=True)
class Span:
    """The part `[first_pts, until_pts)` of one video, in units of its stream's time base.

    Both are times of key frames, but for the first span's beginning, the first frame, and the last one's end, None.
    The samples in it have the numbers `[first_number, until_number)`.
    """

    first_pts: int
    until_pts: int | None
    first_number: int
    until_number: int | None


def cut(path: Path, name: str, fps: float, span_s: float) -> tuple[Span, ...]:
    """Spans of about `span_s` seconds for sampling at `fps`; none where the video is short or has to be read whole.

    Decodes one frame and demuxes the rest. Raises as `pipeline.decoding.open.open_video`.
    """
    from pipeline.decoding.open import open_video

    with open_video(path, name) as video:
        start_s = video.start_s
    with open_container(path, name) as container:
        stream = choose_stream(container, name)
        base = time_base(stream)
        try:
            packets = list_packets(container.demux(stream), stream)
        except PlanViolated:
            return ()
    start = round(Fraction(start_s) / base)
    begins = _begins(packets, start, round(span_s / base))
    numbers = [first_number(pts, start, Fraction(fps).limit_denominator(1_000_000) * base) for pts in begins]
    spans = zip(begins, [*begins[1:], None], numbers, [*numbers[1:], None], strict=True)
    return tuple(Span(*span) for span in spans) if len(begins) > 1 else ()


def packets_of(
    container: InputContainer, stream: VideoStream, span: Span | None, start: int
) -> Iterator[Packet[VideoStream]]:
    """The packets that a span needs, or all; `start` is the presentation time of the video's first frame.

    Raises:
        SurpriseError: its key frame is not found.
    """
    if span is None or span.first_pts == start:
        packets = container.demux(stream)
    else:
        packets = _from_key(container, stream, span.first_pts)
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


def _from_key(container: InputContainer, stream: VideoStream, pts: int) -> Iterator[Packet[VideoStream]]:
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


def _begins(packets: Packets, start: int, length: int) -> list[int]:
    """Presentation times at which spans begin, about `length` apart, the first of them `start`."""
    earliest_after = np.minimum.accumulate(packets.pts[::-1])[::-1]
    end = int(packets.pts.max())
    begins = [start]
    for index in packets.breaks().tolist():
        pts = int(packets.pts[index])
        if begins[-1] + length <= pts <= end - length // 2 and _leading_come_first(packets, earliest_after, index):
            begins.append(pts)
    return begins


def _leading_come_first(packets: Packets, earliest_after: NDArray[np.int64], index: int) -> bool:
    """Whether what is shown before this key frame but sent after it comes straight after it."""
    after = index + 1
    while after < len(packets) and packets.pts[after] < packets.pts[index]:
        after += 1
    return after == len(packets) or bool(earliest_after[after] > packets.pts[index])
