"""The video stream of a media file: open it, read its metadata, and time its frames.

A frame's time is FFmpeg's best-effort timestamp, the one that ffprobe prints: the presentation timestamp, or
the decoding timestamp where the former is missing or wrong more often. FFmpeg's decoders give frames in the
order of presentation, so that order is believed over the timestamps:

- no timestamp: the previous time plus the frame duration;
- the same time as the previous frame: it takes that frame's place;
- up to a second earlier than the previous frame: it was due in the past, is never shown, and is left out;
- more than a second earlier, or more than a day later: the clock was reset (a damaged stream; of a joined one
  `clock` beside this file repairs the packets), so time goes on from the previous frame by one frame duration.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kinodex.pipeline.errors import EmptyFile, NotAVideo, NothingDecodes, NoVideoStream, SourceForbidden, SourceMissing
from kinodex.pipeline.images import display_size, is_hdr
from kinodex.pipeline.playlists import DEVICES, PLAYLIST_DEMUXERS, REFERRING_DEMUXERS, playlist_kind, refusal

if TYPE_CHECKING:
    from av import Packet, VideoFrame
    from av.container import InputContainer
    from av.video.stream import VideoStream

# Only local bytes, whatever the file names; and no presentation times that the demuxer guesses where it has none (for
# AVI with B-frames it guesses wrong).
OPEN_OPTIONS = {"protocol_whitelist": "file", "fflags": "-genpts"}
# FFmpeg opens these for almost any bytes or for one still picture; none of them is a video.
NO_VIDEO_FORMATS = frozenset({"tty", "image2", "bin", "xbin", "adf", "idf", "rawvideo"})
BACK_TO_BELIEVE_S = 1
GAP_TO_BELIEVE_S = 24 * 3600
NOMINAL_FRAME_S = Fraction(1, 25)  # where neither the frame nor the stream says how long a frame lasts
DRAWN, COMMENT = "drawn by kinodex", "comment"
"""Tag of the container of a film that kinodex drew, and its name."""
SCRIPT = ".script.json"
"""End of the name of the script beside such a film: films of before there was a tag are known by it."""


@dataclass(frozen=True, slots=True)
class VideoMetadata:
    """Metadata from the header of a video, corrected where the first frame knows better.

    `width_px` and `height_px` are as displayed: square pixels, after rotation. `fps` and
    `claimed_duration_s` are what the header says, which may be wrong; what really decoded is in
    `kinodex.pipeline.sample.ChunkSummary`. `rotation_deg` is counterclockwise; `drawn`: see `is_drawn`. `earliest_s` is
    the time at which the first of its streams begins: pictures, sound or text.
    """

    container: str
    stream_index: int
    codec: str
    pix_fmt: str
    width_px: int
    height_px: int
    sample_aspect_ratio: float
    rotation_deg: int
    fps: float | None
    claimed_duration_s: float | None
    interlaced: bool
    hdr: bool = False
    drawn: bool = False
    earliest_s: float = 0.0
    tags: Mapping[str, Any] = field(default_factory=dict)
    """Columns of metadata that the file fills: see `file_tags`."""


def open_container(path: Path, name: str, playlist: bool = False) -> InputContainer:
    """Open a local file for demuxing; `playlist` allows one whose members were identified with it.

    Raises SourceMissing, SourceForbidden: it cannot be read; PlaylistRefused: it shows what other files hold;
    EmptyFile, NotAVideo: it holds no video container.
    """
    try:
        if not path.exists():
            raise SourceMissing(f"{name}: no such file; check the path")
        if path.stat().st_size == 0:
            raise EmptyFile(f"{name}: the file is empty (0 bytes); copy or download it again")
        if not playlist and (kind := playlist_kind(path)):
            raise refusal(name, kind)
        return demuxed(f"file:{path}", name, playlist)
    except PermissionError as error:
        raise SourceForbidden(f"{name}: reading is not permitted; ask for the right to read it") from error


def demuxed(file: Any, name: str, playlist: bool = False) -> InputContainer:
    """Open a file or its address for demuxing; raises NotAVideo, also if it is text or a still picture."""
    import av

    try:
        container: InputContainer = av.open(file, container_options=open_options(playlist), metadata_errors="replace")
    except av.FFmpegError as error:
        if isinstance(error, MemoryError | PermissionError):  # they say nothing about what is in it
            raise
        raise NotAVideo(
            f"{name}: no video container that FFmpeg can read ({error.strerror}); "
            "give a media file such as mp4, mkv, webm, mov, avi or ts"
        ) from error
    if container.format.name in NO_VIDEO_FORMATS or container.format.name.endswith("_pipe"):
        kind = container.format.name
        container.close()
        raise NotAVideo(f"{name}: looks like {kind}, text or a still picture, not a video; give a media file")
    return container


@lru_cache
def open_options(playlist: bool = False) -> dict[str, str]:
    """Return FFmpeg's options for opening a local file: no demuxer that opens others, unless `playlist` allows some.

    FFmpeg compares the demuxer that it chose with the list before it reads anything more.
    """
    import av

    left_out = DEVICES | REFERRING_DEMUXERS - (PLAYLIST_DEMUXERS if playlist else frozenset())
    return OPEN_OPTIONS | {"format_whitelist": ",".join(sorted(av.formats_available - left_out))}


def choose_stream(container: InputContainer, name: str) -> VideoStream:
    """Choose the video stream: never cover art or thumbnails; the default one first, then the largest.

    Of an animated AVIF the animation, not the still picture that stands for it, which has one frame and no duration.

    The demuxer discards all other streams.

    Raises NoVideoStream: there is none; NothingDecodes: there is one, but no decoder for it.
    """
    from av.stream import Discard, Disposition

    moving = _moving(container)
    if not moving:
        kinds = {"cover art" if s.type == "video" else s.type for s in container.streams}
        held = f"holds {' and '.join(sorted(kinds))} but no video stream" if kinds else "holds no stream at all"
        raise NoVideoStream(f"{name}: {held}; give a file with moving pictures")
    decodable = [s for s in moving if s.codec_context is not None]
    if not decodable:
        raise NothingDecodes(f"{name}: no decoder for its video codec; re-encode it, for example to H.264")

    def rank(stream: VideoStream) -> tuple[bool, bool, int]:
        return not _is_item(stream), bool(stream.disposition & Disposition.default), stream.width * stream.height

    chosen = max(decodable, key=rank)
    for other in container.streams:
        if other.index != chosen.index:
            other.discard = Discard.all
    return chosen


def _moving(container: InputContainer) -> list[VideoStream]:
    from av.stream import Disposition

    still = Disposition.attached_pic | Disposition.timed_thumbnails | Disposition.still_image
    return [stream for stream in container.streams.video if not stream.disposition & still]


def _is_item(stream: VideoStream) -> bool:
    """True for the still picture that stands for an animation."""
    return stream.frames == 1 and stream.duration is None


def file_tags(container: InputContainer, stream: VideoStream) -> dict[str, Any]:
    """The columns that a file fills: by its tags, and `other_streams`, the video streams beside the chosen one."""
    others = [each for each in _moving(container) if each.index != stream.index and not _is_item(each)]
    if not others or container.format.name in PLAYLIST_DEMUXERS:  # of a playlist they show the same in other sizes
        return known_tags(container.metadata)
    return known_tags(container.metadata) | {OTHER_STREAMS: ", ".join(map(_described, others))}


def _described(stream: VideoStream) -> str:
    codec = stream.codec_context.name if stream.codec_context is not None else "codec unknown"
    return f"stream {stream.index} ({stream.width}x{stream.height} {codec})"


def read_metadata(container: InputContainer, stream: VideoStream, frame: VideoFrame) -> VideoMetadata:
    aspect = stream.sample_aspect_ratio or Fraction(1)
    width_px, height_px = display_size(frame, aspect)
    claimed_s = float((stream.duration or 0) * (stream.time_base or 0)) or (container.duration or 0) / 1e6
    return VideoMetadata(
        container=container.format.name,
        stream_index=stream.index,
        codec=stream.codec_context.codec.canonical_name,
        pix_fmt=frame.format.name,
        width_px=width_px,
        height_px=height_px,
        sample_aspect_ratio=float(aspect),
        rotation_deg=frame.rotation,
        fps=float(stream.average_rate) if stream.average_rate else None,
        claimed_duration_s=claimed_s or None,
        interlaced=frame.interlaced_frame,
        hdr=is_hdr(frame),
        drawn=is_drawn(container),
        earliest_s=float(_earliest(container, stream, frame)),
        tags=file_tags(container, stream),
    )


def _earliest(container: InputContainer, stream: VideoStream, frame: VideoFrame) -> Fraction:
    """Find the earliest time at which pictures, sound or text begin; `frame` is the first of the pictures."""
    timed = [stream, *container.streams.audio, *container.streams.subtitles]
    starts = [each.start_time * each.time_base for each in timed if each.start_time is not None and each.time_base]
    return min([*starts, (frame.pts or 0) * time_base(stream)])


def is_drawn(container: InputContainer) -> bool:
    """True for a film that kinodex drew, by the tag of its container or the script beside the file."""
    tags = {name.lower(): value for name, value in container.metadata.items()}
    path = Path(container.name.removeprefix("file:")) if isinstance(container.name, str) else None
    return tags.get(COMMENT) == DRAWN or (path is not None and path.with_suffix(SCRIPT).is_file())


# Tags of a container, as cameras, editors and downloads write them, under one name each.

TAGS: Mapping[str, tuple[str, ...]] = {
    "recorded_at": ("com.apple.quicktime.creationdate", "creation_time", "date"),
    "place": ("com.apple.quicktime.location.iso6709", "location", "location-eng"),
    "work_title": ("title",),
    "artist": ("artist", "author"),
    "device": ("com.apple.quicktime.model", "com.android.model", "model", "encoded_by"),
}
"""Columns, and the tags that say it, the surest first."""
OTHER_STREAMS = "other_streams"
ISO_6709 = re.compile(r"([+-]\d+(?:\.\d+)?)([+-]\d+(?:\.\d+)?)(?![.\d])")
LATITUDE_DIGITS, LONGITUDE_DIGITS = 2, 3
"""Of whole degrees (ISO 6709, annex H); minutes and then seconds follow with two digits each."""
YEAR_ZERO = 1970
"""Cameras whose clock was never set write the beginning of their count."""


def known_tags(tags: Mapping[str, str]) -> dict[str, Any]:
    """The columns that a container's tags fill: time in UTC, texts, degrees; a time that cannot be is left out."""
    held = {name.lower(): value.strip() for name, value in tags.items() if value.strip()}
    found: dict[str, Any] = {}
    for column, names in TAGS.items():
        if text := next((held[name] for name in names if name in held), None):
            found[column] = text
    if "recorded_at" in found:
        moment = _moment(found.pop("recorded_at"))
        found |= {} if moment is None else {"recorded_at": moment}
    if place := ISO_6709.match(found.get("place", "")):
        latitude, longitude = _degrees(place[1], LATITUDE_DIGITS, 90), _degrees(place[2], LONGITUDE_DIGITS, 180)
        if latitude is not None and longitude is not None:
            found |= {"latitude": latitude, "longitude": longitude}
    return found


def _degrees(text: str, digits: int, most: int) -> float | None:
    """Read an angle of ISO 6709: degrees of so many digits or fewer, or with minutes, or with these and seconds too."""
    whole, _, fraction = text[1:].partition(".")
    more = max(0, len(whole) - digits)
    parts = [whole[: len(whole) - more], *(whole[at : at + 2] for at in range(len(whole) - more, len(whole), 2))]
    values = [*map(float, parts[:-1]), float(f"{parts[-1]}.{fraction or 0}")]
    angle: float = sum(value / 60**power for power, value in enumerate(values))
    if more not in (0, 2, 4) or max(values[1:], default=0.0) >= 60 or angle > most:
        return None
    return -angle if text.startswith("-") else angle


def _moment(text: str) -> datetime | None:
    with suppress(ValueError):
        moment = datetime.fromisoformat(text)
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
        return moment if moment.year > YEAR_ZERO else None
    return None


FRUITLESS_READS = 32
"""Errors of a demuxer in a row before the rest of a file is given up."""


def packets_to_end(
    demux: Callable[[], Iterator[Packet[Any]]], on_error: Callable[[], None] = lambda: None
) -> Iterator[Packet[Any]]:
    """Demux a stream to its end; what cannot be read is told to `on_error`, and left out."""
    from av import FFmpegError

    fruitless = 0
    while fruitless < FRUITLESS_READS:
        try:
            for packet in demux():
                fruitless = 0
                yield packet
            return
        except FFmpegError:
            on_error()
            fruitless += 1


def monotonic_frames(
    frames: Iterable[VideoFrame], stream: VideoStream
) -> Generator[tuple[Fraction, VideoFrame], None, None]:
    """Give each frame, in the order of decoding, its time in seconds; the times never fall."""
    best_effort, shift, base = _BestEffort(), Fraction(0), time_base(stream)
    last: tuple[Fraction, VideoFrame] | None = None
    for frame in frames:
        stamp = best_effort(frame.pts, frame.dts)
        if last is None:
            time = (stamp or 0) * base
        else:
            follow_on = last[0] + duration_s(last[1].duration, base, stream.average_rate)
            time = follow_on if stamp is None else stamp * base + shift
            if not -BACK_TO_BELIEVE_S <= time - last[0] <= GAP_TO_BELIEVE_S:
                shift += follow_on - time
                time = follow_on
            if time < last[0]:
                continue
        last = (time, frame)
        yield last


def time_base(stream: VideoStream) -> Fraction:
    return stream.time_base or Fraction(1, 1_000_000)


def duration_s(ticks: int, base: Fraction, average_rate: Fraction | None) -> Fraction:
    """Return the duration of a frame: `ticks` of the time base as it claims, else by the stream's rate."""
    claimed = ticks * base
    if 0 < claimed <= GAP_TO_BELIEVE_S:
        return claimed
    return 1 / average_rate if average_rate else NOMINAL_FRAME_S


@dataclass(slots=True)
class SentTimes:
    """Presentation times of packets: of the one sent last, and the two latest."""

    last: int | None = None
    latest: int | None = None
    before_latest: int | None = None

    def add(self, pts: int | None) -> None:
        if pts is None:
            return
        self.last = pts
        if self.latest is None or pts > self.latest:
            self.before_latest, self.latest = self.latest, pts
        elif self.before_latest is None or self.before_latest < pts < self.latest:
            self.before_latest = pts


def last_duration(stream: VideoStream, pts: int | None, claimed: int, sent: SentTimes) -> int:
    """Choose how long the last frame is shown, in units of the time base; `pts` is its time, `claimed` what it claims.

    MP4 and QuickTime keep the steps between decoding times (box `stts`, ISO/IEC 14496-12, 8.6.1.2), which FFmpeg gives
    out as durations. A frame that is sent before others and shown after them so has the duration of another frame; it
    is given that of the frame before it.
    """
    is_step = "mp4" in stream.container.format.name.split(",")
    if not is_step or pts in (None, sent.last) or pts != sent.latest or sent.before_latest is None:
        return claimed
    return pts - sent.before_latest


class _BestEffort:
    """FFmpeg's choice of a timestamp for each frame: of pts and dts, the one that ran backwards less often so far."""

    def __init__(self) -> None:
        self.last_pts = self.last_dts = -math.inf
        self.faulty_pts = self.faulty_dts = 0

    def __call__(self, pts: int | None, dts: int | None) -> int | None:
        if dts is not None:
            self.faulty_dts += dts <= self.last_dts
            self.last_dts = dts
        elif pts is not None:
            self.last_dts = pts
        if pts is not None:
            self.faulty_pts += pts <= self.last_pts
            self.last_pts = pts
        elif dts is not None:
            self.last_pts = dts
        use_pts = pts is not None and (self.faulty_pts <= self.faulty_dts or dts is None)
        return pts if use_pts else dts


# The shape of pixels where it changes on the way, as broadcasts change from 4:3 to 16:9 at one size.

OWN_ASPECT = frozenset({"mpegts", "mpeg", "mpegvideo", "m4v", "h264", "hevc"})
"""Containers that say nothing of the shape of pixels: only the stream does, again in each of its headers."""


class PixelAspects:
    """The shapes of pixels that a decoder has met, by the times from which they hold.

    A decoder knows the shape of the packet that it was sent last, and frames come out later.
    """

    def __init__(self, stream: VideoStream) -> None:
        self._context = stream.codec_context if stream.container.format.name in OWN_ASPECT else None
        self._met: list[tuple[int | None, Fraction]] = []

    def sent(self, packet: Packet[Any] | None) -> None:
        """Take note of what the decoder says after it was sent a packet."""
        aspect = self._context.sample_aspect_ratio if self._context is not None and packet is not None else None
        if packet is not None and aspect and (not self._met or self._met[-1][1] != aspect):
            self._met.append((packet.pts, aspect))

    def of(self, frame: VideoFrame) -> Fraction | None:
        """Return the shape of a frame's pixels; None if the container says it for all of them."""
        pts = frame.pts
        held = [aspect for since, aspect in self._met if pts is None or since is None or since <= pts]
        return held[-1] if held else self._met[0][1] if self._met else None


# Types that all decoders share: a sample, a span of a video, an open video, a source of frames by number.


class PickError(Exception):
    """A decoder other than PyAV cannot read a video, or reads it otherwise. Never leaves the room."""


class SpanDamaged(Exception):
    """A span that cannot be read as a pass over the whole video would read it; read the video whole."""


@dataclass(frozen=True, slots=True)
class Span:
    """The part `[first_pts, until_pts)` of one video, in units of its stream's time base.

    Both are times of key frames, except that the first span begins with the first frame, and that the last one ends
    with the video (None). The samples in it have the numbers `[first_number, until_number)`.
    """

    first_pts: int
    until_pts: int | None
    first_number: int
    until_number: int | None


@dataclass(frozen=True, slots=True)
class TimedFrame:
    """The frame shown at instant `number / fps` after the start, at presentation time `time_s`.

    `aspect` is the shape of its pixels, if the stream says it for each frame; None: that of the metadata.
    """

    number: int
    time_s: float
    frame: VideoFrame
    aspect: Fraction | None = None


class Pass(Protocol):
    """A pass over a video: a `VideoReader`, or a `kinodex.pipeline.gpu.GpuReader`.

    `start_s` is the time of its first frame. `end_s`, `decode_errors`, `decoder` (the one that decoded the last
    sample) and `fell_back` (why PyAV replaced the requested decoder) are final when it has ended.
    `end_s` is that of the video only if its end was read.
    """

    metadata: VideoMetadata
    start_s: float
    end_s: float
    decode_errors: int
    decoder: str
    fell_back: str | None


class VideoReader(Pass, Protocol):
    """One video, open for reading."""

    def samples(self, fps: float, span: Span | None = None) -> Generator[TimedFrame, None, None]:
        """Yield each distinct frame that is shown at one of the instants `start + k / fps`, in order, once.

        The frame of an instant is the last one whose time is not after it; the last frame is shown for its own
        duration. `number` is the first `k` that shows the frame. Costs nothing per instant, so gaps of any length are
        free. With `span`, the samples of one part of the video; numbers and times count from the video's start all the
        same.

        Raises SpanDamaged: a span cannot be read by itself; read the whole video.
        """

    def close(self) -> None:
        """Free what was opened; frames already returned stay valid."""


FrameSource = tuple[int, Callable[[Sequence[int]], tuple[NDArray[np.float64], NDArray[np.uint8]]]]
"""A video as a list of frames in the order of presentation: their number, and a function of rising indices.

It gives times `[n]` in seconds after the first frame and upright RGB `[n, height, width, 3]`, or raises PickError.
"""
