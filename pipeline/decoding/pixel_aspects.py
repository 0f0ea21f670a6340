"""The shape of pixels where it changes on the way, as broadcasts change from 4:3 to 16:9 at one size."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from av import Packet, VideoFrame
    from av.video.stream import VideoStream

OWN_ASPECT = frozenset({"mpegts", "mpeg", "mpegvideo", "m4v", "h264", "hevc"})
"""Containers that say nothing of the shape of pixels: only the stream does, again in each of its headers."""


class PixelAspects:
    """The shapes of pixels that a decoder has met, by the times from which they hold.

    A decoder knows the shape of the packet that it was sent last, and frames come out later.
    """

    def __init__(self, stream: VideoStream) -> None:
        self._context = stream.codec_context if stream.container.format.name in OWN_ASPECT else None
        self._met: list[tuple[int | None, Fraction]] = []

    def sent(self, packet: Packet[Any] | None) -> None:
        """Take note of what the decoder says after it was sent a packet."""
        aspect = self._context.sample_aspect_ratio if self._context is not None and packet is not None else None
        if packet is not None and aspect and (not self._met or self._met[-1][1] != aspect):
            self._met.append((packet.pts, aspect))

    def of(self, frame: VideoFrame) -> Fraction | None:
        """Return the shape of a frame's pixels; None if the container says it for all of them."""
        pts = frame.pts
        held = [aspect for since, aspect in self._met if pts is None or since is None or since <= pts]
        return held[-1] if held else self._met[0][1] if self._met else None
