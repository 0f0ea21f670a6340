"""Decoded frames of one stream: pictures with the times between which they are shown, sound cut by a graph."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from fractions import Fraction
from itertools import chain
from typing import TYPE_CHECKING, Any

from pipeline.decoding.video_stream import choose_stream, duration_s, monotonic_frames, time_base
from pipeline.errors import NothingDecodes
from pipeline.media.player_form import TICK_S

if TYPE_CHECKING:
    from av import AudioFrame, Packet, VideoFrame
    from av.audio.stream import AudioStream
    from av.container import InputContainer
    from av.video.stream import VideoStream

Shown = tuple[Fraction, Fraction, "VideoFrame"]
"""Times in seconds from and until which a picture is shown, and its frame."""

SOUND_IN_STEP = "async=1:min_hard_comp=0.02"
"""Gaps and overlaps of the times of sound are filled and cut: after a search in AVI and VOB frames say they overlap."""
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
    open_file: Callable[[], AbstractContextManager[InputContainer]],
    name: str,
    start_s: float,
    search: bool = True,
    all_timed: bool = True,
) -> tuple[VideoStream, Iterator[Shown]]:
    """Open a file and its stream of pictures from the one that is shown at `start_s` on, or the first.

    Where the file cannot be searched, or a search lands behind that picture, and without `search`, all before it is
    decoded.
    """
    from av import FFmpegError

    source = opened.enter_context(open_file())
    stream = choose_stream(source, name)
    if search:
        try:
            frames = timed_frames(source, stream, seek_key_frame(source, stream, name, start_s, all_timed))
            first = next(frames, None)
            if first is not None and first[0] - start_s < TICK_S:
                return stream, _shown_after(chain([first], frames), start_s)
        except (FFmpegError, NothingDecodes):
            pass  # it is read from its beginning
        source = opened.enter_context(open_file())
        stream = choose_stream(source, name)
    return stream, _shown_after(timed_frames(source, stream), start_s)


def _shown_after(frames: Iterator[Shown], start_s: float) -> Iterator[Shown]:
    return (each for each in frames if each[1] - start_s > TICK_S)  # times are fractions, and `start_s` is a float


def decoded_frames(source: InputContainer, stream: Any, first_pts: int | None = None) -> Iterator[Any]:
    """Yield the frames that decode, from a key frame of this time on if it is given; damage is left out."""
    from av import FFmpegError

    has_begun = first_pts is None
    for packet in source.demux(stream):
        has_begun = has_begun or (packet.is_keyframe and packet.pts == first_pts)
        if not has_begun:
            continue
        try:
            yield from packet.decode()
        except FFmpegError:
            continue


def timed_frames(source: InputContainer, stream: VideoStream, first_pts: int | None = None) -> Iterator[Shown]:
    """Yield every picture, from a key frame of this time on, with the time it is shown from and until."""
    last: tuple[Fraction, VideoFrame] | None = None
    for time, frame in monotonic_frames(decoded_frames(source, stream, first_pts), stream):
        if last is not None and time > last[0]:
            yield last[0], time, last[1]
        last = time, frame
    if last is not None:
        yield last[0], last[0] + duration_s(last[1].duration, time_base(stream), stream.average_rate), last[1]


def trimmed_sound(
    source: InputContainer, sound: AudioStream, start_s: float, end_s: float | None = None, at_s: float = 0.0
) -> Iterator[AudioFrame]:
    """Yield the sound of `[start_s, end_s)`, cut to the sample, on a clock where it begins at `at_s`.

    `source` stands at `start_s` or before; without an end all that follows is the sound.
    """
    graph: Any = None
    for frame in decoded_frames(source, sound):
        if frame.time is None:
            continue
        if end_s is not None and frame.time >= end_s:
            break
        if graph is None:
            graph = _trimmer(sound, frame, start_s, end_s, at_s)
        graph.push(frame)
        yield from _pulled(graph)
    if graph is not None:
        graph.push(None)
        yield from _pulled(graph)


def _trimmer(sound: AudioStream, first: AudioFrame, start_s: float, end_s: float | None, at_s: float) -> Any:
    from av.filter import Graph

    graph = Graph()
    end = "" if end_s is None else f":end={end_s:.6f}"
    steps = [
        graph.add_abuffer(template=sound, time_base=first.time_base),
        graph.add("aresample", SOUND_IN_STEP),
        graph.add("atrim", f"start={start_s:.6f}{end}"),
        graph.add("asetpts", f"PTS-{start_s - at_s:.6f}/TB"),
        graph.add("abuffersink"),
    ]
    graph.link_nodes(*steps).configure()
    return graph


def _pulled(graph: Any) -> Iterator[AudioFrame]:
    from av import error

    while True:
        try:
            yield graph.pull()
        except (error.BlockingIOError, error.EOFError):  # it needs more, or has given all
            return
