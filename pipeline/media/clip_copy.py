"""Cut a clip by copying packets: no loss, hardly any work, and a beginning at a key frame."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kinodex.pipeline.decoding.clock import file_clock
from kinodex.pipeline.decoding.frame_times import duration_s, time_base
from kinodex.pipeline.decoding.stream import choose_stream, open_container
from kinodex.pipeline.errors import VideoError
from kinodex.pipeline.media.clip_check import INSIDE_S, inside_s, shown_at
from kinodex.pipeline.media.clip_file import ClipFile, Expected, container_suffix, nothing_there, removed_on_error
from kinodex.pipeline.media.pictures import seek_key_frame
from kinodex.pipeline.media.sound import choose_sound

if TYPE_CHECKING:
    from av import Packet
    from av.container import InputContainer, OutputContainer
    from av.stream import Stream
    from av.video.stream import VideoStream

REORDERED_S = 1
"""After a search in Matroska the first packets have no decoding time: pictures shown this much earlier may follow."""


def copy_suffix(path: Path, name: str) -> str:
    with open_container(path, name) as source:
        streams = [choose_stream(source, name), choose_sound(source)]
        return container_suffix(each.codec_context.codec.canonical_name for each in streams if each is not None)


def copy_clip(path: Path, name: str, out: Path, start_s: float, end_s: float) -> ClipFile:
    """Copy the packets of `[start_s, end_s)` of a video, picture and sound, into `out` (.mp4 or .mkv).

    The clip begins with the last key frame at or before `start_s` and shows nothing from before it; its clock begins
    there at 0. It shows every picture up to `end_s`, and may show some later ones that those are made from. Raises
    VideoError if nothing of the video lies in the range, the container cannot hold its codecs, or the clock of the
    video begins anew; and as `open_container`.
    """
    import av

    if file_clock(path, name).is_repaired:
        raise VideoError(
            f"{name}: its timestamps begin anew inside it, so nothing can be copied out; cut exactly instead"
        )
    with open_container(path, name) as source, removed_on_error(out):
        video = choose_stream(source, name)
        sound = choose_sound(source)
        try:
            first = seek_key_frame(source, video, name, start_s)
            with av.open(str(out), "w") as target:
                copies = {each.index: copy_stream(target, each, name) for each in (video, sound) if each is not None}
                until_s, heard = _copy_packets(source, target, copies, video, first, end_s)
        except av.FFmpegError as error:
            raise VideoError(f"{name}: its packets cannot be copied ({error.strerror}); cut exactly instead") from error
        if until_s <= start_s:
            raise nothing_there(name, start_s, until_s)
        begin_s = float(first * time_base(video))
    expected = _expected(path, name, begin_s, min(end_s, until_s))
    return ClipFile(out, begin_s, until_s, "copied", heard, expected)


def _expected(path: Path, name: str, begin_s: float, end_s: float) -> tuple[Expected, ...]:
    """Decode what the video shows when the clip begins, and just before the end that was asked for."""
    shown = [shown_at(path, name, time_s) for time_s in (begin_s, end_s - INSIDE_S)]
    return tuple(
        Expected(from_s - begin_s + inside_s(from_s, until_s), picture)
        for from_s, until_s, picture in filter(None, shown)
    )


def copy_stream(target: OutputContainer, stream: Any, name: str) -> Stream:
    """Add a stream of the same kind; raises VideoError where the container cannot hold it."""
    try:
        copy: Stream = target.add_stream_from_template(stream, opaque=True)  # also of codecs without an encoder here
    except ValueError as error:
        codec, kind = stream.codec_context.codec.canonical_name, target.format.name
        other = "write the clip as .mkv, or " if kind == "mp4" else ""
        raise VideoError(f"{name}: {kind} cannot hold {codec}; {other}cut exactly") from error
    return copy


def _copy_packets(
    source: InputContainer,
    target: OutputContainer,
    copies: dict[int, Stream],
    video: VideoStream,
    first: int,
    end_s: float,
) -> tuple[float, bool]:
    """Copy packets from the key frame `first` on; returns the time at which the last picture ends, and if it sounds."""
    zero = first * time_base(video)
    streams = [stream for stream in source.streams if stream.index in copies]
    open_ones, last_s, has_begun, has_sound, early = set(copies), -math.inf, False, False, []
    for packet in source.demux(streams):
        index, base = packet.stream.index, packet.stream.time_base or Fraction(1, 1_000_000)
        if packet.pts is None or index not in open_ones:
            continue
        time, order = packet.pts * base, (packet.dts if packet.dts is not None else packet.pts) * base
        if index == video.index and packet.dts is None:
            order -= REORDERED_S
        if order >= end_s:
            open_ones.discard(index)
            if not open_ones:
                break
            continue
        if index == video.index:
            has_begun = has_begun or (packet.is_keyframe and packet.pts == first)
            if not has_begun or packet.pts < first:
                continue  # pictures that need what came before
            ticks = packet.duration or 0
            last_s = max(last_s, float(time + duration_s(ticks, base, video.average_rate)))
        elif time < zero:
            continue
        else:
            has_sound = True
        _shift(packet, round(zero / base))
        packet.stream = copies[index]
        early.append(packet)
        if has_begun:  # sound may come before the key frame in the file
            target.mux(early)
            early = []
    return last_s, has_sound


def _shift(packet: Packet[Any], ticks: int) -> None:
    packet.pts = (packet.pts or 0) - ticks
    if packet.dts is not None:
        packet.dts -= ticks
