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

from pipeline.decoding.video_stream import choose_stream, time_base
from pipeline.errors import NothingDecodes, VideoError
from pipeline.media.clip import choose_sound
from pipeline.media.copy_clip import seek_key_frame
from pipeline.media.playable import SOUND_IN_MP4
from pipeline.media.player_form import SOUND_HZ, encoded_sound, order_s
from pipeline.media.source import open_source
from pipeline.media.stream_parts import copied_packets, encoded_pictures, shown_pictures
from pipeline.media.timed_frames import trimmed_sound

if TYPE_CHECKING:
    from av import Packet
    from av.container import InputContainer, OutputContainer
    from av.video.stream import VideoStream

StreamWay = Literal["remuxed", "transcoded"]
FRAGMENTED = {
    "movflags": "frag_keyframe+delay_moov+default_base_moof",
    "frag_duration": "1000000",
    "flush_packets": "1",
}


BACK_S = (0, 5, 60)
"""So much earlier a file is searched, one after another, where a search lands behind the time that is sought."""
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
    copy = target.add_stream_from_template(video, opaque=True)
    for back_s in BACK_S:  # some demuxers land behind the time that they are sent to
        source.seek(first_pts - round(back_s / time_base(video)), stream=video, backward=True)
        packets = copied_packets(source, video, copy, from_s, first_pts)
        first = next(packets, None)
        if first is not None:
            return chain([first], packets)
    raise NothingDecodes(f"{uri}: the key frame at {first_pts * time_base(video)} s cannot be found again")


def _encoded(uri: str, opened: ExitStack, target: OutputContainer, from_s: float) -> Iterator[Packet[Any]]:
    """Encode from a time on: after a search in the file, or where that lands behind it, by decoding all before it."""
    for back_s in (*BACK_S, None):
        source = opened.enter_context(open_source(uri))
        video = choose_stream(source, uri)
        if back_s is not None and not _is_sought(source, video, uri, from_s - back_s):
            continue
        pictures = shown_pictures(source, video, from_s)
        first = next(pictures, None)
        if first is not None and (first[0] <= from_s or back_s is None):
            return encoded_pictures(chain([first], pictures), video, target, from_s)
    raise VideoError(f"{uri}: shows no picture from {from_s:.2f} s on; choose an earlier time")


def _is_sought(source: InputContainer, video: VideoStream, uri: str, from_s: float) -> bool:
    """Go to the key frame at or before a time; False where the file cannot be searched."""
    from av import FFmpegError

    try:
        seek_key_frame(source, video, uri, from_s)
    except (FFmpegError, NothingDecodes):
        return False
    return True


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
