"""The form of pictures and sound that players expect of a file that is encoded again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kinodex.pipeline.errors import VideoError

if TYPE_CHECKING:
    from av import AudioFrame, Packet, VideoFrame
    from av.audio.stream import AudioStream
    from av.container import OutputContainer
    from av.video.stream import VideoStream

TICK_S = Fraction(1, 90_000)
"""Unit of times, in which every usual frame rate is a whole number."""
SOUND_HZ = 48_000
BT709, LIMITED_RANGE = 1, 1
"""Code point of BT.709 (ITU-T H.273: matrix, primaries and transfer curve), and FFmpeg's of limited range."""
LEAST_PX = 2


def add_pictures(
    target: OutputContainer, encoder: str, options: dict[str, str], width_px: int, height_px: int
) -> VideoStream:
    """Add a stream for pictures of this size, made even; raises VideoError where one is too small to be encoded."""
    if min(height_px, width_px) < LEAST_PX:
        raise VideoError(f"got pictures of {width_px} x {height_px} pixels; at least 2 x 2 are needed")
    stream: Any = target.add_stream(encoder, options=options)
    stream.width, stream.height, stream.pix_fmt = width_px // 2 * 2, height_px // 2 * 2, "yuv420p"
    context = stream.codec_context
    stream.time_base = context.time_base = TICK_S
    context.colorspace = context.color_primaries = context.color_trc = BT709
    context.color_range = LIMITED_RANGE
    made: VideoStream = stream
    return made


def player_frame(
    rgb: NDArray[np.uint8], stream: VideoStream, start_s: float | Fraction, end_s: float | Fraction
) -> VideoFrame:
    """Make a frame of `stream` from a picture [height, width, 3] that is shown in `[start_s, end_s)`."""
    from av import VideoFrame

    even = np.ascontiguousarray(rgb[: stream.height, : stream.width])
    frame = VideoFrame.from_ndarray(even, format="rgb24").reformat(
        format="yuv420p", dst_colorspace="ITU709", dst_color_range="MPEG"
    )
    frame.pts, frame.time_base = round(start_s / TICK_S), TICK_S
    frame.duration = round((end_s - start_s) / TICK_S)
    return frame


def encoded_frames(stream: VideoStream, frames: Iterable[VideoFrame]) -> Iterator[Packet[Any]]:
    """Encode pictures to the last; each packet says how long it is shown, for nothing follows the last one."""
    lasting: dict[int | None, int] = {}
    for frame in chain(frames, [None]):
        if frame is not None:
            lasting[frame.pts] = frame.duration
        for packet in stream.encode(frame):
            packet.duration = lasting.pop(packet.pts, 0)
            yield packet


def encoded_sound(stream: AudioStream, frames: Iterable[AudioFrame]) -> Iterator[Packet[Any]]:
    for frame in frames:
        yield from stream.encode(frame)
    yield from stream.encode()


def order_s(packet: Packet[Any]) -> float:
    """Return the time by which packets follow each other in a file, in seconds."""
    stamp = packet.dts if packet.dts is not None else packet.pts or 0
    return float(stamp * (packet.time_base or 0))
