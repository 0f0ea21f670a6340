"""Packets of a stream that begins at any time of a video: copied, or encoded again; its clock begins there at 0."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from pipeline.decoding.video_stream import duration_s, monotonic_frames, time_base
from pipeline.errors import VideoError
from pipeline.images.convert import rgb_scaler

if TYPE_CHECKING:
    from av import Packet, VideoFrame
    from av.audio.stream import AudioStream
    from av.container import InputContainer, OutputContainer
    from av.video.stream import VideoStream

LONGEST_PX, SHORTEST_PX = 1280, 720
"""Pictures that are encoded are made no larger than is needed for both: larger ones take longer than they are shown."""
KEY_FRAMES_S = 2
SOUND_HZ = 48_000
TICK_S = Fraction(1, 90_000)
"""Unit of the stream's times, in which every usual frame rate is a whole number."""
BT709, LIMITED_RANGE = 1, 1
"""Code point of BT.709 (ITU-T H.273) and FFmpeg's of limited range, which players expect of such pictures."""
ENCODERS = {
    "libx264": {"preset": "superfast", "tune": "zerolatency", "crf": "23", "threads": "2"},
    "libopenh264": {"rc_mode": "quality"},
    "libvpx-vp9": {"deadline": "realtime", "cpu-used": "8", "crf": "32", "b": "0", "threads": "2"},
}
"""Encoders by preference. PyAV's wheels hold the first and the last; builds without GPL parts hold others."""

Shown = tuple[Fraction, Fraction, "VideoFrame"]
"""Times in seconds from and until which a picture is shown, and its frame."""


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


def shown_pictures(source: InputContainer, stream: VideoStream, from_s: float) -> Iterator[Shown]:
    """Yield what a video shows from `from_s` on, if `source` stands there or before."""
    for begin, until, frame in _shown(source, stream):
        if until - from_s > TICK_S:
            yield begin, until, frame


def encoded_pictures(
    pictures: Iterable[Shown], stream: VideoStream, target: OutputContainer, from_s: float
) -> Iterator[Packet[Any]]:
    """Encode pictures of a stream: upright, square pixels, ordinary range; `from_s` is time 0."""
    from av import VideoFrame

    to_rgb = rgb_scaler(stream.sample_aspect_ratio or Fraction(1), LONGEST_PX, SHORTEST_PX)
    out: VideoStream | None = None
    zero = Fraction(from_s)
    for begin, until, frame in pictures:
        rgb = to_rgb(frame)
        if out is None:
            out = _encoder(target, rgb.shape[1], rgb.shape[0])
        even = np.ascontiguousarray(rgb[: out.height, : out.width])
        picture = VideoFrame.from_ndarray(even, format="rgb24").reformat(
            format="yuv420p", dst_colorspace="ITU709", dst_color_range="MPEG"
        )
        picture.pts, picture.time_base = round((max(begin, zero) - zero) / TICK_S), TICK_S
        picture.duration = round((until - max(begin, zero)) / TICK_S)
        yield from out.encode(picture)
    if out is not None:
        yield from out.encode()


def encoded_sound(
    source: InputContainer, sound: AudioStream, target_stream: AudioStream, from_s: float
) -> Iterator[Packet[Any]]:
    """Encode the sound from `from_s` on, which is its time 0."""
    for frame in _trimmed(source, sound, from_s):
        yield from target_stream.encode(frame)
    yield from target_stream.encode()


def order_s(packet: Packet[Any]) -> float:
    """Return the time by which packets follow each other in a file, in seconds."""
    stamp = packet.dts if packet.dts is not None else packet.pts or 0
    return float(stamp * (packet.time_base or 0))


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
    if min(height_px, width_px) < 2:
        raise VideoError(f"got pictures of {width_px} x {height_px} pixels; a stream needs 2 x 2")
    name = encoder_name()
    stream: Any = target.add_stream(name, options=ENCODERS[name])
    stream.width, stream.height, stream.pix_fmt = width_px // 2 * 2, height_px // 2 * 2, "yuv420p"
    context = stream.codec_context
    stream.time_base = context.time_base = TICK_S
    context.gop_size, context.max_b_frames = 25 * KEY_FRAMES_S, 0
    context.colorspace = context.color_primaries = context.color_trc = BT709
    context.color_range = LIMITED_RANGE
    encoder: VideoStream = stream
    return encoder


def _shown(source: InputContainer, stream: VideoStream) -> Iterator[Shown]:
    """Yield every picture with the time it is shown from and until."""
    last: tuple[Fraction, VideoFrame] | None = None
    for time, frame in monotonic_frames(_decoded(source, stream), stream):
        if last is not None and time > last[0]:
            yield last[0], time, last[1]
        last = time, frame
    if last is not None:
        yield last[0], last[0] + duration_s(last[1].duration, time_base(stream), stream.average_rate), last[1]


def _decoded(source: InputContainer, stream: Any) -> Iterator[Any]:
    """Yield the frames that decode; damage is left out."""
    from av import FFmpegError

    for packet in source.demux(stream):
        try:
            yield from packet.decode()
        except FFmpegError:
            continue


def _trimmed(source: InputContainer, sound: AudioStream, from_s: float) -> Iterable[Any]:
    """Yield frames of sound on the stream's clock, the first one cut to the sample."""
    from av import error
    from av.filter import Graph

    graph: Graph | None = None
    for frame in _decoded(source, sound):
        if frame.time is None:
            continue
        if graph is None:
            graph = Graph()
            steps = [
                graph.add_abuffer(template=sound, time_base=frame.time_base),
                graph.add("atrim", f"start={from_s:.6f}"),
                graph.add("asetpts", f"PTS-{from_s:.6f}/TB"),
                graph.add("abuffersink"),
            ]
            graph.link_nodes(*steps).configure()
        graph.push(frame)
        while True:
            try:
                yield graph.pull()
            except (error.BlockingIOError, error.EOFError):  # it needs more, or has given all
                break
