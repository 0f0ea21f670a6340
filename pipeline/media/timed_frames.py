"""Decoded frames of one stream: pictures with the times between which they are shown, sound cut by a graph."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from pipeline.decoding.video_stream import duration_s, monotonic_frames, time_base

if TYPE_CHECKING:
    from av import AudioFrame, VideoFrame
    from av.audio.stream import AudioStream
    from av.container import InputContainer
    from av.video.stream import VideoStream

Shown = tuple[Fraction, Fraction, "VideoFrame"]
"""Times in seconds from and until which a picture is shown, and its frame."""


def decoded_frames(source: InputContainer, stream: Any) -> Iterator[Any]:
    """Yield the frames that decode; damage is left out."""
    from av import FFmpegError

    for packet in source.demux(stream):
        try:
            yield from packet.decode()
        except FFmpegError:
            continue


def timed_frames(source: InputContainer, stream: VideoStream) -> Iterator[Shown]:
    """Yield every picture with the time it is shown from and until."""
    last: tuple[Fraction, VideoFrame] | None = None
    for time, frame in monotonic_frames(decoded_frames(source, stream), stream):
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
