"""Pictures of a video from any time of it on, with the times between which they are shown."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import ExitStack
from fractions import Fraction
from itertools import chain
from typing import TYPE_CHECKING

from kinodex.pipeline.decoding.clock import UNBROKEN, Clock, Opener
from kinodex.pipeline.decoding.frame_times import duration_s, monotonic_frames, time_base
from kinodex.pipeline.decoding.pixel_aspects import PixelAspects
from kinodex.pipeline.decoding.stream import choose_stream
from kinodex.pipeline.errors import NothingDecodes
from kinodex.pipeline.media.encoding import TICK_S
from kinodex.pipeline.media.source import decoded_frames

if TYPE_CHECKING:
    from av import Packet, VideoFrame
    from av.container import InputContainer
    from av.video.stream import VideoStream

Shown = tuple[Fraction, Fraction, "VideoFrame"]
"""Times in seconds from and until which a picture is shown, and its frame."""
BACK_S = (0, 5, 60, 600)
"""So much earlier a file is searched, one after another: some demuxers land behind the time that is sought."""
ROUNDING_TICKS = Fraction(1, 1000)
"""A time as a float is a frame's own if it is nearer to it than this."""


def seek_key_frame(
    source: InputContainer, video: VideoStream, name: str, start_s: float, all_timed: bool = True
) -> int:
    """Go to where the last key frame shown at or before `start_s` follows, or the first of all; returns its time.

    The time is in ticks. Other packets may come before that key frame. Raises NothingDecodes if there is none, or
    with `all_timed` packets there that do not say when they are shown: after a search nothing can tell their times; and
    av.FFmpegError where the file cannot be searched.
    """
    base = time_base(video)
    aim = math.floor(Fraction(start_s) / base + ROUNDING_TICKS)
    for back_s in BACK_S:
        place = aim - round(back_s / base)
        source.seek(place, stream=video, backward=True)
        found = _last_key_frame(source.demux(video), aim, name, all_timed)
        if found is not None:
            break
    else:
        place = (video.start_time or 0) - round(BACK_S[1] / base)
        source.seek(place, stream=video, backward=True)
        found = next((each.pts for each in source.demux(video) if each.is_keyframe and each.pts is not None), None)
    if found is None:
        raise NothingDecodes(f"{name}: holds no key frame that a clip could begin with; cut exactly")
    source.seek(place, stream=video, backward=True)  # not to the key frame itself: that may land behind it
    return found


def _last_key_frame(packets: Iterator[Packet[VideoStream]], aim: int, name: str, all_timed: bool) -> int | None:
    found = None
    for packet in packets:
        if packet.pts is None and packet.size and all_timed:
            raise NothingDecodes(f"{name}: not all of its packets say when they are shown; cut exactly")
        if packet.pts is None or not packet.is_keyframe:
            continue
        if packet.pts > aim:
            break
        found = packet.pts
    return found


def frames_from(
    opened: ExitStack,
    open_file: Opener,
    name: str,
    start_s: float,
    clock: Clock,
    search: bool = True,
    all_timed: bool = True,
) -> tuple[VideoStream, Iterator[Shown], PixelAspects]:
    """Open a file and its stream of pictures from the one that is shown at `start_s` on, or the first, and its shapes.

    Where the file cannot be searched, or a search lands behind that picture, where its clock is repaired, and without
    `search`, all before it is decoded.
    """
    from av import FFmpegError

    source = opened.enter_context(open_file())
    stream = choose_stream(source, name)
    if search and not clock.is_repaired:
        try:
            aspects, key_pts = PixelAspects(stream), seek_key_frame(source, stream, name, start_s, all_timed)
            frames = timed_frames(source, stream, key_pts, aspects=aspects)
            first = next(frames, None)
            if first is not None and first[0] - start_s < TICK_S:
                return stream, _shown_after(chain([first], frames), start_s), aspects
        except (FFmpegError, NothingDecodes):
            pass  # it is read from its beginning
        source = opened.enter_context(open_file())
        stream = choose_stream(source, name)
    aspects = PixelAspects(stream)
    return stream, _shown_after(timed_frames(source, stream, None, clock, aspects), start_s), aspects


def _shown_after(frames: Iterator[Shown], start_s: float) -> Iterator[Shown]:
    return (each for each in frames if each[1] - start_s > TICK_S)  # times are fractions, and `start_s` is a float


def timed_frames(
    source: InputContainer,
    stream: VideoStream,
    first_pts: int | None = None,
    clock: Clock = UNBROKEN,
    aspects: PixelAspects | None = None,
) -> Iterator[Shown]:
    """Yield every picture, from a key frame of this time on, with the time it is shown from and until."""
    last: tuple[Fraction, VideoFrame] | None = None
    for time, frame in monotonic_frames(decoded_frames(source, stream, first_pts, clock, aspects), stream):
        if last is not None and time > last[0]:
            yield last[0], time, last[1]
        last = time, frame
    if last is not None:
        yield last[0], last[0] + duration_s(last[1].duration, time_base(stream), stream.average_rate), last[1]
