"""Packets of a stream that begins at any time of a video: copied, or encoded again; its clock begins there at 0."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import chain
from typing import TYPE_CHECKING, Any

from pipeline.errors import VideoError
from pipeline.images.convert import rgb_scaler
from pipeline.media.player_form import add_pictures, encoded_frames, player_frame
from pipeline.media.timed_frames import Shown

if TYPE_CHECKING:
    from av import Packet
    from av.container import InputContainer, OutputContainer
    from av.video.stream import VideoStream

LONGEST_PX, SHORTEST_PX = 1280, 720
"""Pictures that are encoded are made no larger than is needed for both: larger ones take longer than they are shown."""
KEY_FRAMES_S = 2
ENCODERS = {
    "libx264": {"preset": "superfast", "tune": "zerolatency", "crf": "23", "threads": "2"},
    "libopenh264": {"rc_mode": "quality"},
    "libvpx-vp9": {"deadline": "realtime", "cpu-used": "8", "crf": "32", "b": "0", "threads": "2"},
}
"""Encoders by preference. PyAV's wheels hold the first and the last; builds without GPL parts hold others."""


def copied_packets(
    source: InputContainer, stream: Any, copy: Any, from_s: float, first_pts: int | None = None
) -> Iterator[Packet[Any]]:
    """Yield the packets of a stream from its key frame `first_pts` on, without one those from `from_s` on.

    `copy` is their stream in the output, where `from_s` is time 0. Pictures before it, which later ones are made from,
    so have times below 0: MP4 says in an edit list that they are not shown. Yields nothing where `source` stands behind
    the key frame.
    """
    base = stream.time_base or Fraction(1, 1_000_000)
    zero = round(Fraction(from_s) / base)
    first, has_begun = (zero, True) if first_pts is None else (first_pts, False)
    for packet in source.demux(stream):
        has_begun = has_begun or packet.pts == first_pts
        if packet.pts is None or packet.pts < first or not has_begun:
            continue
        packet.pts -= zero
        if packet.dts is not None:
            packet.dts -= zero
        packet.stream = copy
        yield packet


def encoded_pictures(
    pictures: Iterable[Shown], stream: VideoStream, target: OutputContainer, from_s: float
) -> Iterator[Packet[Any]]:
    """Encode pictures of a stream: upright, square pixels, ordinary range; `from_s` is time 0."""
    to_rgb = rgb_scaler(stream.sample_aspect_ratio or Fraction(1), LONGEST_PX, SHORTEST_PX)
    zero = Fraction(from_s)
    pictures = iter(pictures)
    first = next(pictures, None)
    if first is None:
        return
    height_px, width_px, _ = to_rgb(first[2]).shape
    out = _encoder(target, width_px, height_px)
    shown = chain([first], pictures)
    yield from encoded_frames(
        out, (player_frame(to_rgb(each), out, max(begin, zero) - zero, until - zero) for begin, until, each in shown)
    )


def encoder_name() -> str:
    """Return the first of `ENCODERS` that this build of PyAV holds; raises VideoError if it holds none."""
    from av import Codec
    from av.codec.codec import UnknownCodecError

    for name in ENCODERS:
        try:
            Codec(name, "w")
        except UnknownCodecError:
            continue
        return name
    raise VideoError(f"this build of PyAV encodes nothing that browsers play; it needs one of {', '.join(ENCODERS)}")


def _encoder(target: OutputContainer, width_px: int, height_px: int) -> VideoStream:
    name = encoder_name()
    stream = add_pictures(target, name, ENCODERS[name], width_px, height_px)
    stream.codec_context.gop_size, stream.codec_context.max_b_frames = 25 * KEY_FRAMES_S, 0
    return stream
