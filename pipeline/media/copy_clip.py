"""Cut a clip by copying packets: no loss, hardly any work, and a beginning at a key frame."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.decoding.video_stream import choose_stream, duration_s, open_container, time_base
from pipeline.errors import NothingDecodes, VideoError
from pipeline.media.clip import ClipFile, choose_sound, container_suffix, nothing_there, removed_on_error

if TYPE_CHECKING:
    from av import Packet
    from av.container import InputContainer, OutputContainer
    from av.stream import Stream
    from av.video.stream import VideoStream


def copy_suffix(path: Path, name: str) -> str:
    """Choose the container for a copied clip of a video by its codecs: ".mp4" or ".mkv". Raises as `copy_clip`."""
    with open_container(path, name) as source:
        streams = [choose_stream(source, name), choose_sound(source)]
        return container_suffix(each.codec_context.codec.canonical_name for each in streams if each is not None)


def copy_clip(path: Path, name: str, out: Path, start_s: float, end_s: float) -> ClipFile:
    """Copy the packets of `[start_s, end_s)` of a video, picture and sound, into `out` (.mp4 or .mkv).

    The clip begins with the last key frame at or before `start_s` and shows nothing from before it; its clock begins
    there at 0. It shows every picture up to `end_s`, and may show some later ones that those are made from. Raises
    VideoError if nothing of the video lies in the range or the container cannot hold its codecs, and as
    `open_container`.
    """
    import av

    with open_container(path, name) as source, removed_on_error(out):
        video = choose_stream(source, name)
        sound = choose_sound(source)
        try:
            first = seek_key_frame(source, video, name, start_s)
            with av.open(str(out), "w") as target:
                copies = {each.index: _copy_stream(target, each, name) for each in (video, sound) if each is not None}
                until_s = _copy_packets(source, target, copies, video, first, end_s)
        except av.FFmpegError as error:
            raise VideoError(f"{name}: its packets cannot be copied ({error.strerror}); cut exactly instead") from error
        if until_s <= start_s:
            raise nothing_there(name, start_s, until_s)
    return ClipFile(out, float(first * time_base(video)), until_s, "copied", sound is not None)


def seek_key_frame(source: InputContainer, video: VideoStream, name: str, start_s: float) -> int:
    """Go to the last key frame shown at or before `start_s`, or to the first of all; returns its time in ticks.

    Some demuxers find a later one: then it is looked for from further back. Raises NothingDecodes if there is none, and
    av.FFmpegError where the file cannot be searched.
    """
    base = time_base(video)
    aim = round(Fraction(start_s) / base)
    for back_s in (0, 10, 60, 600):
        source.seek(aim - round(back_s / base), stream=video, backward=True)
        found = _last_key_frame(source.demux(video), aim)
        if found is not None:
            break
    else:
        source.seek(video.start_time or 0, stream=video, backward=True)
        found = next((each.pts for each in source.demux(video) if each.is_keyframe and each.pts is not None), None)
    if found is None:
        raise NothingDecodes(f"{name}: holds no key frame that a clip could begin with; cut exactly")
    source.seek(found, stream=video, backward=True)
    return found


def _last_key_frame(packets: Iterator[Packet[VideoStream]], aim: int) -> int | None:
    found = None
    for packet in packets:
        if packet.pts is None or not packet.is_keyframe:
            continue
        if packet.pts > aim:
            break
        found = packet.pts
    return found


def _copy_stream(target: OutputContainer, stream: Any, name: str) -> Stream:
    try:
        copy: Stream = target.add_stream_from_template(stream, opaque=True)  # also of codecs without an encoder here
    except ValueError as error:
        codec, kind = stream.codec_context.codec.canonical_name, target.format.name
        raise VideoError(f"{name}: {kind} cannot hold {codec}; write the clip as .mkv, or cut exactly") from error
    return copy


def _copy_packets(
    source: InputContainer,
    target: OutputContainer,
    copies: dict[int, Stream],
    video: VideoStream,
    first: int,
    end_s: float,
) -> float:
    """Copy packets from the key frame `first` on; returns the time at which the last picture ends."""
    zero = first * time_base(video)
    streams = [stream for stream in source.streams if stream.index in copies]
    open_ones, last_s, has_begun, early = set(copies), -math.inf, False, []
    for packet in source.demux(streams):
        index, base = packet.stream.index, packet.stream.time_base or Fraction(1, 1_000_000)
        if packet.pts is None or index not in open_ones:
            continue
        time, order = packet.pts * base, (packet.dts if packet.dts is not None else packet.pts) * base
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
        _shift(packet, round(zero / base))
        packet.stream = copies[index]
        early.append(packet)
        if has_begun:  # sound may come before the key frame in the file
            target.mux(early)
            early = []
    return last_s


def _shift(packet: Packet[Any], ticks: int) -> None:
    packet.pts = (packet.pts or 0) - ticks
    if packet.dts is not None:
        packet.dts -= ticks
