"""A video as a stream of fragmented MP4 that begins at any time of it, for players that cannot play the file itself.

It is written as fast as it is read, in fragments of a second or less, and holds no more than some packets in memory.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from contextlib import ExitStack
from fractions import Fraction
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, Protocol

from pipeline.decoding.video_stream import choose_stream
from pipeline.errors import VideoError
from pipeline.media.clip import choose_sound
from pipeline.media.copy_clip import copy_stream
from pipeline.media.playable import SOUND_IN_MP4
from pipeline.media.player_form import SOUND_HZ, encoded_sound, order_s
from pipeline.media.source import open_source
from pipeline.media.stream_parts import copied_packets, encoded_pictures
from pipeline.media.timed_frames import frames_from, seek_key_frame, trimmed_sound

if TYPE_CHECKING:
    from av import Packet
    from av.container import OutputContainer
StreamWay = Literal["remuxed", "transcoded"]
FRAGMENTED = {
    "movflags": "frag_keyframe+delay_moov+default_base_moof",
    "frag_duration": "1000000",
    "flush_packets": "1",
}


BROADCAST = frozenset({"mpegts", "mpeg", "aac"})
"""Containers whose sound has a header in each packet (ADTS), which MP4 does not take: it is encoded again."""


class Output(Protocol):
    """Where the bytes of a stream go, one piece after another."""

    def write(self, data: bytes) -> int: ...


def write_stream(uri: str, way: StreamWay, from_s: float, out: Output) -> None:
    """Write a video from `from_s` on to its end, picture and sound; its clock begins at 0 with `from_s`.

    Raises:
        SourceError, PlaylistRefused, NotAVideo, EmptyFile: as `pipeline.media.source.open_source`.
        NoVideoStream, NothingDecodes, VideoError: nothing is shown from there on, or a packet cannot be copied.
    """
    import av

    with ExitStack() as opened:
        target = opened.enter_context(av.open(out, "w", format="mp4", options=FRAGMENTED))
        pictures = _copied if way == "remuxed" else _encoded
        try:
            parts = [pictures(uri, opened, target, from_s), *_sound(uri, opened, target, from_s)]
            for packet in heapq.merge(*parts, key=order_s):
                target.mux(packet)
        except av.FFmpegError as error:
            raise VideoError(f"{uri}: it cannot be {way} ({error.strerror})") from error


def _copied(uri: str, opened: ExitStack, target: OutputContainer, from_s: float) -> Iterator[Packet[Any]]:
    source = opened.enter_context(open_source(uri))
    video = choose_stream(source, uri)
    first_pts = seek_key_frame(source, video, uri, from_s)
    return copied_packets(source, video, copy_stream(target, video, uri), from_s, first_pts)


def _encoded(uri: str, opened: ExitStack, target: OutputContainer, from_s: float) -> Iterator[Packet[Any]]:
    """Encode from a time on. Of files whose packets have no times of their own it may be a little off it."""
    video, pictures = frames_from(opened, lambda: open_source(uri), uri, from_s, all_timed=False)
    first = next(pictures, None)
    if first is None:
        raise VideoError(f"{uri}: shows no picture from {from_s:.2f} s on; choose an earlier time")
    return encoded_pictures(chain([first], pictures), video, target, from_s)


def _sound(uri: str, opened: ExitStack, target: OutputContainer, from_s: float) -> list[Iterator[Packet[Any]]]:
    """Read the sound beside the pictures, from a file of its own: the two need not lie side by side."""
    from av.stream import Discard

    source = opened.enter_context(open_source(uri))
    sound = choose_sound(source)
    if sound is None:
        return []
    for other in source.streams:
        if other.index != sound.index:
            other.discard = Discard.all
    base = sound.time_base or Fraction(1, 1_000_000)
    source.seek(max(round(from_s / base), sound.start_time or 0), stream=sound, backward=True)
    is_broadcast = source.format.name in BROADCAST
    if sound.codec_context.codec.canonical_name in SOUND_IN_MP4 and not is_broadcast:
        copy = target.add_stream_from_template(sound, opaque=True)
        return [copied_packets(source, sound, copy, from_s)]
    encoder = target.add_stream("aac", rate=SOUND_HZ, layout="stereo")
    return [encoded_sound(encoder, trimmed_sound(source, sound, from_s))]
