"""Tell which packets need decoding, so that frames nobody sees cost little.

A frame that no other frame refers to, and that is shown at no sample instant, would be decoded only to be
thrown away. At one sample a second that is a third to a half of the work in ordinary H.264 and HEVC; the
frames that remain are the same to the last bit. A frame is on the screen from its time to the next frame's,
and the next frame is found by looking a few packets ahead, so this is a stream like the rest.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from av import Packet
    from av.video.stream import VideoStream

# Codecs that write into the stream which frames are no reference; elsewhere skipping gains little or nothing.
CODECS = frozenset({"h264", "hevc"})
PACKETS_AHEAD = 32  # twice as far as H.264 and HEVC can reorder
STEP_TO_BELIEVE_S = 1.0


def needed(
    packets: Iterable[Packet[VideoStream] | None], is_shown: Callable[[int, int], bool]
) -> Iterator[tuple[Packet[VideoStream] | None, bool]]:
    """Each packet, in order, with whether its frame has to be decoded for its own sake.

    Args:
        packets: of one stream; None stands for its end.
        is_shown: whether a frame on the screen in the half-open range of two presentation times (in units of
            the stream's time base) has to be had.

    Once a timestamp is missing or jumps, everything is needed from `PACKETS_AHEAD` packets before that.
    """
    window: deque[Packet[VideoStream] | None] = deque()
    previous: Packet[VideoStream] | None = None
    believed = True

    def judge(packet: Packet[VideoStream] | None) -> bool:
        if packet is None or packet.pts is None or not believed:
            return True
        later = [other.pts for other in window if other and other.pts is not None and other.pts > packet.pts]
        return not later or is_shown(packet.pts, min(later))

    for packet in packets:
        believed = believed and _follows(previous, packet)
        previous = packet
        window.append(packet)
        if len(window) > PACKETS_AHEAD:
            first = window.popleft()
            yield first, judge(first)
    while window:
        first = window.popleft()
        yield first, judge(first)


def _follows(before: Packet[VideoStream] | None, packet: Packet[VideoStream] | None) -> bool:
    """Whether a packet's timestamps go on sensibly from the packet before it."""
    if packet is None or not packet.size:
        return True
    if packet.pts is None or packet.dts is None:
        return False
    if before is None or before.pts is None or before.dts is None:
        return True
    limit = STEP_TO_BELIEVE_S / packet.time_base
    return packet.dts > before.dts and abs(packet.pts - before.pts) <= limit
