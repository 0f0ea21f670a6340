"""A video as a stream of fragmented MP4 that begins at any time of it, for players that cannot play the file itself.

It is written as fast as it is read, in fragments of a second or less, and holds no more than some packets in memory.
Packets are copied, or pictures and sound are encoded again; the clock of the stream begins there at 0.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from fractions import Fraction
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, Protocol

from kinodex.pipeline.decoding.clock import Clock, find_clock
from kinodex.pipeline.decoding.stream import choose_stream
from kinodex.pipeline.errors import VideoError
from kinodex.pipeline.images import rgb_scaler
from kinodex.pipeline.media.clip_copy import copy_stream
from kinodex.pipeline.media.encoding import SOUND_HZ, add_pictures, encoded_frames, encoded_sound, order_s, player_frame
from kinodex.pipeline.media.pictures import Shown, frames_from, seek_key_frame
from kinodex.pipeline.media.play import SOUND_IN_MP4
from kinodex.pipeline.media.sound import only_sound, seek_sound, trimmed_sound
from kinodex.pipeline.media.source import open_source

if TYPE_CHECKING:
    from av import Packet
    from av.container import InputContainer, OutputContainer

StreamWay = Literal["remuxed", "transcoded"]
FRAGMENTED = {
    "movflags": "frag_keyframe+delay_moov+default_base_moof",
    "frag_duration": "1000000",
    "flush_packets": "1",
}
BROADCAST = frozenset({"mpegts", "mpeg", "aac"})
"""Containers whose sound has a header in each packet (ADTS), which MP4 does not take: it is encoded again."""


class Output(Protocol):
    def write(self, data: bytes) -> int: ...


def write_stream(uri: str, way: StreamWay, from_s: float, end_s: float, out: Output) -> None:
    """Write a video from `from_s` on to its end at `end_s`, picture and sound; its clock begins at 0 with `from_s`.

    Where timestamps begin anew inside it, its pictures are encoded whatever the `way`, and all before is read. Raises
    as `open_source`, and a VideoError if nothing is shown from there on or a packet cannot be copied.
    """
    import av

    with ExitStack() as opened:
        target = opened.enter_context(av.open(out, "w", format="mp4", options=FRAGMENTED))
        try:
            clock = find_clock(lambda: open_source(uri), uri, end_s)
            if way == "remuxed" and not clock.is_repaired:
                pictures = _copied(uri, opened, target, from_s)
            else:
                pictures = _encoded(uri, opened, target, from_s, clock)
            parts = [pictures, *_sound(uri, opened, target, from_s, clock)]
            for packet in heapq.merge(*parts, key=order_s):
                target.mux(packet)
        except av.FFmpegError as error:
            raise VideoError(f"{uri}: it cannot be {way} ({error.strerror})") from error


def _copied(uri: str, opened: ExitStack, target: OutputContainer, from_s: float) -> Iterator[Packet[Any]]:
    source = opened.enter_context(open_source(uri))
    video = choose_stream(source, uri)
    first_pts = seek_key_frame(source, video, uri, from_s)
    return copied_packets(source, video, copy_stream(target, video, uri), from_s, first_pts)


def _encoded(
    uri: str, opened: ExitStack, target: OutputContainer, from_s: float, clock: Clock
) -> Iterator[Packet[Any]]:
    """Encode from a time on. Of files whose packets have no times of their own it may be a little off it."""
    video, pictures, aspects = frames_from(opened, lambda: open_source(uri), uri, from_s, clock, all_timed=False)
    first = next(pictures, None)
    if first is None:
        raise VideoError(f"{uri}: shows no picture from {from_s:.2f} s on; choose an earlier time")
    aspect = aspects.of(first[2]) or video.sample_aspect_ratio or Fraction(1)
    return encoded_pictures(first, pictures, aspect, target, from_s)


def _sound(
    uri: str, opened: ExitStack, target: OutputContainer, from_s: float, clock: Clock
) -> list[Iterator[Packet[Any]]]:
    """Read the sound beside the pictures, from a file of its own: the two need not lie side by side."""
    source = opened.enter_context(open_source(uri))
    sound = only_sound(source)
    if sound is None:
        return []
    seek_sound(source, sound, from_s, clock)
    is_broadcast = source.format.name in BROADCAST
    if sound.codec_context.codec.canonical_name in SOUND_IN_MP4 and not (is_broadcast or clock.is_repaired):
        copy = target.add_stream_from_template(sound, opaque=True)
        return [copied_packets(source, sound, copy, from_s)]
    encoder = target.add_stream("aac", rate=SOUND_HZ, layout="stereo")
    return [encoded_sound(encoder, trimmed_sound(source, sound, clock, from_s))]


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
    first: Shown, others: Iterable[Shown], aspect: Fraction, target: OutputContainer, from_s: float
) -> Iterator[Packet[Any]]:
    """Encode pictures with pixels of this shape: upright, square pixels, ordinary range; `from_s` is time 0."""
    to_rgb = rgb_scaler(aspect, LONGEST_PX, SHORTEST_PX)
    height_px, width_px, _ = to_rgb(first[2]).shape
    name = encoder_name()
    out = add_pictures(target, name, ENCODERS[name], width_px, height_px)
    out.codec_context.gop_size, out.codec_context.max_b_frames = 25 * KEY_FRAMES_S, 0
    zero, shown = Fraction(from_s), chain([first], others)
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
