"""Clips of a video: copied or encoded again, with subtitles added, and checked once they are written."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from fractions import Fraction
from itertools import accumulate, chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from kinodex.pipeline.decoding.aspect import PixelAspects
from kinodex.pipeline.decoding.clock import UNBROKEN, Clock, file_clock
from kinodex.pipeline.decoding.stream import choose_stream, duration_s, open_container, time_base
from kinodex.pipeline.errors import VideoError, WrongClip
from kinodex.pipeline.images import rgb_scaler
from kinodex.pipeline.media.source import (
    SOUND_HZ,
    TICK_S,
    ClipFile,
    Expected,
    Shown,
    add_pictures,
    choose_sound,
    container_suffix,
    encoded_frames,
    encoded_sound,
    frames_from,
    nothing_there,
    only_sound,
    order_s,
    player_frame,
    removed_on_error,
    seek_key_frame,
    seek_sound,
    trimmed_sound,
)
from kinodex.pipeline.subtitles import Cue

if TYPE_CHECKING:
    from av import AudioFrame, Packet
    from av.container import InputContainer, OutputContainer
    from av.stream import Stream
    from av.subtitles.stream import SubtitleStream
    from av.video.stream import VideoStream

# Cut a clip by copying packets: no loss, hardly any work, and a beginning at a key frame.

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
        Expected(from_s - begin_s + _inside_s(from_s, until_s), picture)
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


# Cut a clip exactly: from the picture shown at its first instant to its last, encoded again as H.264 and AAC.
#
# Several ranges of one video can become one clip, one range after another.

WHOLE_PX = 1 << 16
"""Larger than any picture: it keeps its size."""
OPTIONS = {"preset": "veryfast", "crf": "18", "threads": "1", "bf": "0"}
"""Without B-frames the last picture sent is the last one shown, and is held as long as it says."""

Picture = tuple[float, float, NDArray[np.uint8]]
"""Start and end on the clip's clock in seconds, and the image [height, width, 3]."""


class _Place(NamedTuple):
    """A range of the video, and the time of the clip at which it begins."""

    number: int
    start_s: float
    end_s: float
    at_s: float


class _Made(NamedTuple):
    """When the last picture of a range ends, from the range's start, and its first and last picture in the clip."""

    end_s: float
    expected: tuple[Expected, ...]


def encode_ranges(
    path: Path, name: str, out: Path, ranges: Sequence[tuple[float, float]], search: bool = True
) -> list[ClipFile]:
    """Encode ranges `[start_s, end_s)` of a video, picture and sound, one after another into `out` (.mp4).

    Pictures are upright and have square pixels. The clip's clock begins at 0 with the first range; the first picture of
    each is the one that the video shows at its start. Each takes the time that it was given: one that reaches over the
    end of the video stands still there. Without `search` the video is decoded from its beginning. Returns an entry a
    range, in this order. Raises VideoError for a range without a picture or that cannot be encoded, and as
    `open_container`.
    """
    import av

    places, clock = _places(ranges), file_clock(path, name)
    made: list[_Made] = []
    shapes: list[Fraction] = []
    with removed_on_error(out), _explained(name):
        pictures = chain.from_iterable(
            _placed_pictures(path, name, place, clock, search, made, shapes) for place in places
        )
        first = next(pictures)
        has_track, heard = _has_sound(path, name), set[int]()
        with av.open(str(out), "w", format="mp4") as target:
            height_px, width_px, _ = first[2].shape
            video = add_pictures(target, "libx264", OPTIONS, width_px, height_px)
            frames = (player_frame(rgb, video, start_s, until_s) for start_s, until_s, rgb in chain([first], pictures))
            parts = [encoded_frames(video, frames)]
            if has_track:
                samples = chain.from_iterable(_sound(path, name, place, clock, heard) for place in places)
                parts.append(encoded_sound(target.add_stream("aac", rate=SOUND_HZ, layout="stereo"), samples))
            for packet in heapq.merge(*parts, key=order_s):
                target.mux(packet)
    return [
        ClipFile(out, place.start_s, place.start_s + each.end_s, "encoded", place.number in heard, each.expected)
        for place, each in zip(places, made, strict=True)
    ]


def _places(ranges: Sequence[tuple[float, float]]) -> list[_Place]:
    begins_s = accumulate((end_s - start_s for start_s, end_s in ranges), initial=0.0)
    return [
        _Place(number, start_s, end_s, at_s)
        for number, ((start_s, end_s), at_s) in enumerate(zip(ranges, begins_s, strict=False))
    ]


def _placed_pictures(
    path: Path, name: str, place: _Place, clock: Clock, search: bool, made: list[_Made], shapes: list[Fraction]
) -> Iterator[Picture]:
    """Yield the pictures of one range on the clip's clock; `made` gets what there is to know of the range.

    All pictures of a clip have the shape of its first, which `shapes` gets.
    """
    first: Picture | None = None
    with ExitStack() as opened:
        shown = frames_from(opened, lambda: open_container(path, name), name, place.start_s, clock, search)
        for picture in _pictures(*shown, place, shapes):
            yield picture
            first, last = first or picture, picture
    if first is None:
        raise nothing_there(name, place.start_s)
    begin = Expected(first[0] + _inside_s(*first[:2]), small_picture(first[2]))
    end = Expected(last[1] - _inside_s(*last[:2]), small_picture(last[2]))
    made.append(_Made(last[1] - place.at_s, (begin, end)))


def _pictures(
    stream: VideoStream, frames: Iterable[Shown], aspects: PixelAspects, place: _Place, shapes: list[Fraction]
) -> Iterator[Picture]:
    to_rgb = rgb_scaler(stream.sample_aspect_ratio or Fraction(1), WHOLE_PX, WHOLE_PX)
    shift_s = place.at_s - place.start_s
    for begin, until, frame in frames:
        if place.end_s - begin < TICK_S:
            return
        if not shapes:
            shapes.append(aspects.of(frame) or stream.sample_aspect_ratio or Fraction(1))
        rgb = to_rgb(frame, shapes[0])
        yield max(float(begin) + shift_s, place.at_s), min(float(until), place.end_s) + shift_s, rgb


@contextmanager
def _explained(name: str) -> Iterator[None]:
    from av import FFmpegError

    try:
        yield
    except FFmpegError as error:
        if isinstance(error, MemoryError):  # says nothing about the video
            raise
        raise VideoError(f"{name}: it cannot be encoded ({error.strerror}); choose another range") from error


def _has_sound(path: Path, name: str) -> bool:
    with open_container(path, name) as source:
        return choose_sound(source) is not None


def _sound(path: Path, name: str, place: _Place, clock: Clock, heard: set[int]) -> Iterator[AudioFrame]:
    """Yield the sound of one range on the clip's clock; `heard` gets its number if there is some."""
    with open_container(path, name) as source:
        sound = only_sound(source)
        if sound is None:
            return
        seek_sound(source, sound, place.start_s, clock)
        for frame in trimmed_sound(source, sound, clock, place.start_s, place.end_s, place.at_s):
            heard.add(place.number)
            yield frame


# Add subtitles to a clip as a text track: its other packets are copied as they are.

SUBTITLE_TICK_S = Fraction(1, 1000)
LONGEST_BYTES = 65_535
"""Bytes of a line of mov_text (3GPP TS 26.245), whose length has 16 bits."""
CODECS = {".mp4": "mov_text", ".mkv": "subrip"}
HEADER = b"[Script Info]\nScriptType: v4.00+\n\n[V4+ Styles]\nFormat: Name\nStyle: Default\n\n[Events]\nFormat: Text\n"
"""A header of ASS, which FFmpeg's encoders of text want before they open."""


def add_subtitles(clip: Path, out: Path, cues: Sequence[Cue], language: str | None = None) -> None:
    """Write `clip` to `out` (.mp4 or .mkv, like the clip) with a track of these cues, which count from the clip's 0.

    Cues that would show nothing are left out. Of cues that overlap each stands in a line of its own while both last.
    """
    import av

    with removed_on_error(out), av.open(str(clip)) as source, av.open(str(out), "w") as target:
        copies = {each.index: target.add_stream_from_template(each, opaque=True) for each in source.streams}
        track: Any = target.add_stream(CODECS[out.suffix])
        track.time_base = SUBTITLE_TICK_S
        track.codec_context.subtitle_header = HEADER
        track.metadata["language"] = language or "und"
        texts = _packets(track, _apart(cues), is_timed_text=out.suffix == ".mp4")
        _mux_in_order(source, target, copies, texts)


def _mux_in_order(
    source: InputContainer, target: OutputContainer, copies: dict[int, Stream], texts: Iterator[Packet[Any]]
) -> None:
    """Copy the packets of a clip; those of the text go among them by their times."""
    text = next(texts, None)
    for packet in source.demux():
        stamp = packet.dts if packet.dts is not None else packet.pts  # Matroska's first packets have no other
        if stamp is None:
            continue
        while text is not None and (text.pts or 0) * SUBTITLE_TICK_S <= stamp * packet.time_base:
            target.mux(text)
            text = next(texts, None)
        packet.stream = copies[packet.stream.index]
        target.mux(packet)
    if text is not None:
        target.mux([text, *texts])


def _packets(track: SubtitleStream, cues: Sequence[Cue], is_timed_text: bool) -> Iterator[Packet[Any]]:
    from av import Packet

    for cue in cues:
        data = cue.text.encode()[:LONGEST_BYTES].decode(errors="ignore").encode()
        packet: Packet[Any] = Packet(len(data).to_bytes(2, "big") + data if is_timed_text else data)
        packet.stream, packet.time_base = track, SUBTITLE_TICK_S
        packet.pts = packet.dts = round(cue.start_s / SUBTITLE_TICK_S)
        packet.duration = round(cue.end_s / SUBTITLE_TICK_S) - packet.pts
        yield packet


def _apart(cues: Sequence[Cue]) -> list[Cue]:
    """Make cues that follow each other of cues that may overlap: a track of timed text shows one at a time."""
    shown = [cue for cue in cues if cue.end_s - cue.start_s >= SUBTITLE_TICK_S and cue.text.strip()]
    edges = sorted({time_s for cue in shown for time_s in (cue.start_s, cue.end_s)})
    parts: list[Cue] = []
    for start_s, end_s in pairwise(edges):
        lines = [cue.text for cue in shown if cue.start_s <= start_s and cue.end_s >= end_s]
        text = "\n".join(dict.fromkeys(lines))
        if parts and parts[-1].text == text and parts[-1].end_s == start_s:
            parts[-1] = parts[-1]._replace(end_s=end_s)
        elif text and end_s - start_s >= SUBTITLE_TICK_S:
            parts.append(Cue(start_s, end_s, text))
    return parts


# Check of a clip that was written: it is opened again, and has to show the pictures that were asked for.

SIDE_PX = 32
SCALED_PX = 4 * SIDE_PX
MOST_DIFFERENCE = 8.0
"""Mean difference of grey values, of 0 to 255, that codecs may make of one small picture; another shot makes more."""
INSIDE_S = 0.0006
"""A picture is looked for so far within its time: Matroska rounds times to a millisecond."""


def small_picture(rgb: NDArray[np.uint8]) -> NDArray[np.float32]:
    grey = Image.fromarray(rgb).convert("L").resize((SIDE_PX, SIDE_PX), Image.Resampling.BOX)
    return np.asarray(grey, np.float32)


def _inside_s(start_s: float, until_s: float) -> float:
    return min(INSIDE_S, (until_s - start_s) / 2)


def shown_at(path: Path, name: str, time_s: float) -> tuple[float, float, NDArray[np.float32]] | None:
    """Decode what a file shows at a time: from and until when, and the picture, small; None behind the last one."""
    with ExitStack() as opened:
        stream, frames, _ = frames_from(opened, lambda: open_container(path, name), name, time_s, UNBROKEN)
        for begin, until, frame in frames:
            rgb = rgb_scaler(stream.sample_aspect_ratio or Fraction(1), SCALED_PX, SCALED_PX)(frame)
            return float(begin), float(until), small_picture(rgb)
    return None


def check_clip(path: Path, name: str, expected: Iterable[Expected]) -> None:
    """Raise WrongClip if a clip of the video `name` does not show a picture at its time."""
    for time_s, picture in expected:
        shown = shown_at(path, name, time_s)
        if shown is None or shown[0] > time_s:
            raise WrongClip(f"{name}: its clip shows nothing at {time_s:.3f} s, although the video does")
        if np.abs(shown[2] - picture).mean() > MOST_DIFFERENCE:
            raise WrongClip(f"{name}: its clip shows another picture at {time_s:.3f} s than the video")
