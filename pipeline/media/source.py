"""The source of a video and the file that is made of it: opening, facts, frames and sound, container and encoding."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinodex.pipeline.decoding.aspect import PixelAspects
from kinodex.pipeline.decoding.clock import UNBROKEN, Clock, Opener, file_clock
from kinodex.pipeline.decoding.stream import (
    choose_stream,
    demuxed,
    duration_s,
    monotonic_frames,
    open_container,
    read_metadata,
    time_base,
)
from kinodex.pipeline.errors import NothingDecodes, SoundError, VideoError
from kinodex.pipeline.fetch import attempt, is_remote, local_file, open_parts
from kinodex.pipeline.playlists import HEAD_BYTES, kind_by_head, refusal

if TYPE_CHECKING:
    from av import AudioFrame, Packet, VideoFrame
    from av.audio.stream import AudioStream
    from av.container import InputContainer, OutputContainer
    from av.video.stream import VideoStream

# A part of a video as a file: what was asked for, what is in it, and the choice of its container.

ClipWay = Literal["copied", "encoded"]
COPIED_TO_MP4 = frozenset({"h264", "hevc", "av1", "vp9", "mpeg4", "aac", "mp3", "opus", "flac", "ac3", "eac3", "alac"})
"""Codecs that players expect in MP4; FFmpeg would write some others there, which few of them read."""


class Expected(NamedTuple):
    """A picture, reduced to a few grey values, that a clip has to show at a time of its clock."""

    time_s: float
    picture: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class ClipFile:
    """A clip that was written.

    `start_s` and `end_s` are times of the video, as its frames in the library have them, from the clip's first picture
    to the end of its last. A copied clip begins with the key frame at or before the time that was given. `expected` are
    its first and last picture as the video shows them: `check_clip` looks for them in the file.
    """

    path: Path
    start_s: float
    end_s: float
    way: ClipWay
    has_sound: bool
    expected: tuple[Expected, ...] = field(default=(), compare=False, repr=False)


def container_suffix(codecs: Iterable[str]) -> str:
    """Return ".mp4" if players expect all these codecs there, else ".mkv", which holds everything."""
    return ".mp4" if COPIED_TO_MP4.issuperset(codecs) else ".mkv"


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


def nothing_there(name: str, start_s: float, until_s: float = -math.inf) -> VideoError:
    """Make the error for a range behind the last picture, which ends at `until_s`; -inf: there is none at all."""
    ended = f"its pictures end at {until_s:.2f} s" if math.isfinite(until_s) else "no picture of it can be read there"
    return VideoError(f"{name}: got a range from {start_s:.2f} s, and {ended}; choose an earlier one")


@contextmanager
def removed_on_error(out: Path) -> Iterator[None]:
    try:
        yield
    except BaseException:
        out.unlink(missing_ok=True)
        raise


@contextmanager
def open_source(uri: str) -> Iterator[InputContainer]:
    """Open a video's source for demuxing; one elsewhere is not fetched whole, and little of it is kept in memory.

    Raises a SourceError, PlaylistRefused, EmptyFile or NotAVideo.
    """
    if not is_remote(uri):
        with open_container(local_file(uri), uri) as container:
            yield container
        return
    with open_parts(uri) as file:
        if kind := kind_by_head(attempt(uri, lambda: file.read(HEAD_BYTES))):
            raise refusal(uri, kind, is_remote=True)
        file.seek(0)
        with demuxed(file, uri) as container:
            yield container


# Facts about a media file that decide how a browser can play it.

PACKETS = 60
"""As many packets are looked at for their times: some containers (AVI) have none for pictures that are reordered."""
FRUITLESS_PACKETS = 2000


@dataclass(frozen=True, slots=True)
class MediaFacts:
    """A file's container, streams and what its first picture says.

    Names are FFmpeg's: `container` such as "mov,mp4,m4a,3gp,3g2,mj2", `profile` such as "High 10", or None. `sound` is
    the codec of the sound track that is chosen, None without one. `is_first_video`: a browser, which takes the first
    video track, takes the one that was indexed. `has_times`: its packets say when they are shown.
    """

    container: str
    codec: str
    profile: str | None
    pix_fmt: str
    interlaced: bool
    hdr: bool
    rotation_deg: int
    sound: str | None
    is_first_video: bool
    has_times: bool


def read_facts(container: InputContainer, name: str) -> MediaFacts:
    """Read the facts of an open file, whose first picture is decoded; raises NoVideoStream or NothingDecodes."""
    stream = choose_stream(container, name)
    sound = choose_sound(container)
    video, times = _first_frame(container, stream, name)
    metadata = read_metadata(container, stream, video)
    return MediaFacts(
        container=metadata.container,
        codec=metadata.codec,
        profile=stream.profile,
        pix_fmt=metadata.pix_fmt,
        interlaced=metadata.interlaced,
        hdr=metadata.hdr,
        rotation_deg=metadata.rotation_deg,
        sound=None if sound is None else sound.codec_context.codec.canonical_name,
        is_first_video=container.streams.video[0].index == stream.index,
        has_times=times,
    )


@dataclass(frozen=True, slots=True)
class EditFacts:
    """A file's start time code, if it has one, and the times of its frames in order; none if packets tell none."""

    timecode: str | None
    times_s: tuple[float, ...]


def read_edit_facts(path: Path, name: str) -> EditFacts:
    """Read them from a local file, of which nothing is decoded; raises as `open_container` and `choose_stream`."""
    clock = file_clock(path, name)
    with open_container(path, name) as container:
        stream = choose_stream(container, name)
        tags = [container.metadata, *(each.metadata for each in container.streams)]
        timecode = next((each["timecode"] for each in tags if each.get("timecode")), None)
        packets = [each for each in clock.demux(container, stream) if each.size and not each.is_discard]
    base = time_base(stream)
    shown = [each.pts for each in packets if each.pts is not None]
    is_timed = len(shown) == len(packets)
    return EditFacts(timecode, tuple(sorted({float(pts * base) for pts in shown})) if is_timed else ())


def _first_frame(container: InputContainer, stream: VideoStream, name: str) -> tuple[VideoFrame, bool]:
    """Decode the first picture that comes out; True if the first packets of the track have times of their own."""
    from av import FFmpegError

    stamps: list[int | None] = []
    first: VideoFrame | None = None
    for packet in islice(container.demux(stream), FRUITLESS_PACKETS):
        if packet.size:
            stamps.append(packet.pts)
        if first is None:
            try:
                first = next(iter(stream.decode(packet)), None)
            except FFmpegError:
                continue
        if first is not None and len(stamps) >= PACKETS:
            break
    if first is None:
        raise NothingDecodes(f"{name}: no picture of its beginning decodes")
    return first, None not in stamps


# The form of pictures and sound that players expect of a file that is encoded again.

TICK_S = Fraction(1, 90_000)
"""Unit of times, in which every usual frame rate is a whole number."""
SOUND_HZ = 48_000
BT709, LIMITED_RANGE = 1, 1
"""Code point of BT.709 (ITU-T H.273: matrix, primaries and transfer curve), and FFmpeg's of limited range."""
LEAST_PX = 2


def add_pictures(
    target: OutputContainer, encoder: str, options: dict[str, str], width_px: int, height_px: int
) -> VideoStream:
    """Add a stream for pictures of this size, made even; raises VideoError where one is too small to be encoded."""
    if min(height_px, width_px) < LEAST_PX:
        raise VideoError(f"got pictures of {width_px} x {height_px} pixels; at least 2 x 2 are needed")
    stream: Any = target.add_stream(encoder, options=options)
    stream.width, stream.height, stream.pix_fmt = width_px // 2 * 2, height_px // 2 * 2, "yuv420p"
    context = stream.codec_context
    stream.time_base = context.time_base = TICK_S
    context.colorspace = context.color_primaries = context.color_trc = BT709
    context.color_range = LIMITED_RANGE
    made: VideoStream = stream
    return made


def player_frame(
    rgb: NDArray[np.uint8], stream: VideoStream, start_s: float | Fraction, end_s: float | Fraction
) -> VideoFrame:
    """Make a frame of `stream` from a picture [height, width, 3] that is shown in `[start_s, end_s)`."""
    from av import VideoFrame

    even = np.ascontiguousarray(rgb[: stream.height, : stream.width])
    frame = VideoFrame.from_ndarray(even, format="rgb24").reformat(
        format="yuv420p", dst_colorspace="ITU709", dst_color_range="MPEG"
    )
    frame.pts, frame.time_base = round(start_s / TICK_S), TICK_S
    frame.duration = round((end_s - start_s) / TICK_S)
    return frame


def encoded_frames(stream: VideoStream, frames: Iterable[VideoFrame]) -> Iterator[Packet[Any]]:
    """Encode pictures to the last; each packet says how long it is shown, for nothing follows the last one."""
    lasting: dict[int | None, int] = {}
    for frame in chain(frames, [None]):
        if frame is not None:
            lasting[frame.pts] = frame.duration
        for packet in stream.encode(frame):
            packet.duration = lasting.pop(packet.pts, 0)
            yield packet


def encoded_sound(stream: AudioStream, frames: Iterable[AudioFrame]) -> Iterator[Packet[Any]]:
    for frame in frames:
        yield from stream.encode(frame)
    yield from stream.encode()


def order_s(packet: Packet[Any]) -> float:
    """Return the time by which packets follow each other in a file, in seconds."""
    stamp = packet.dts if packet.dts is not None else packet.pts or 0
    return float(stamp * (packet.time_base or 0))


# Decoded frames of one stream: pictures with the times between which they are shown, sound cut by a graph.

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


def decoded_frames(
    source: InputContainer,
    stream: Any,
    first_pts: int | None = None,
    clock: Clock = UNBROKEN,
    aspects: PixelAspects | None = None,
) -> Iterator[Any]:
    """Yield the frames that decode, from a key frame of this time on if it is given; damage is left out."""
    from av import FFmpegError

    has_begun = first_pts is None
    for packet in clock.demux(source, stream):
        has_begun = has_begun or (packet.is_keyframe and packet.pts == first_pts)
        if not has_begun:
            continue
        try:
            frames = packet.decode()
        except FFmpegError:
            continue
        if aspects is not None:
            aspects.sent(packet)
        yield from frames


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
