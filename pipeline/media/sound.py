"""The sound of a video: the choice of its track, and the samples of a range, cut by a graph."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from kinodex.pipeline.decoding.clock import Clock
from kinodex.pipeline.errors import SoundError
from kinodex.pipeline.media.source import decoded_frames

if TYPE_CHECKING:
    from av import AudioFrame
    from av.audio.stream import AudioStream
    from av.container import InputContainer


def choose_sound(container: InputContainer, track: str | None = None) -> AudioStream | None:
    """Choose the sound track that a player would: the default one first, then the first; None if there is none.

    `track` names another: its number among them, from 1, or its language as the file has it. Raises SoundError if a
    file with sound has no such track.
    """
    from av.stream import Discard, Disposition

    tracks = [stream for stream in container.streams.audio if stream.codec_context is not None]
    if not tracks:
        return None
    named = [each for at, each in enumerate(tracks, 1) if track in (None, str(at), each.language)]
    if not named:
        there = ", ".join(f"{at} ({each.language or 'no language'})" for at, each in enumerate(tracks, 1))
        raise SoundError(f"{container.name}: got sound track {track!r}, and it has {there}; name one of these")
    chosen = max(named, key=lambda stream: bool(stream.disposition & Disposition.default))
    chosen.discard = Discard.default
    return chosen


def only_sound(container: InputContainer, track: str | None = None) -> AudioStream | None:
    """Choose the sound track as `choose_sound`; nothing else is demuxed."""
    from av.stream import Discard

    chosen = choose_sound(container, track)
    for other in container.streams:
        if chosen is None or other.index != chosen.index:
            other.discard = Discard.all
    return chosen


SOUND_IN_STEP = "async=1:min_hard_comp=0.02"
"""Gaps and overlaps of the times of sound are filled and cut: after a search in AVI and VOB frames say they overlap."""


def seek_sound(source: InputContainer, sound: AudioStream, start_s: float, clock: Clock) -> None:
    """Go to `start_s` or before, in a file that stands at its beginning; there it stays if its clock is repaired."""
    if not clock.is_repaired:
        place = max(round(start_s / (sound.time_base or 1)), sound.start_time or 0)
        source.seek(place, stream=sound, backward=True)


def trimmed_sound(
    source: InputContainer,
    sound: AudioStream,
    clock: Clock,
    start_s: float,
    end_s: float | None = None,
    at_s: float = 0.0,
) -> Iterator[AudioFrame]:
    """Yield the sound of `[start_s, end_s)`, cut to the sample, on a clock where it begins at `at_s`.

    `source` stands where `seek_sound` leaves it; without an end all that follows is the sound.
    """
    graph: Any = None
    for frame in decoded_frames(source, sound, clock=clock):
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
