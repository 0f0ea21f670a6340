"""The video stream of a media file: open it, choose it, read its metadata and its packets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kinodex.pipeline.decoding.frame_times import time_base
from kinodex.pipeline.decoding.tags import OTHER_STREAMS, known_tags
from kinodex.pipeline.errors import EmptyFile, NotAVideo, NothingDecodes, NoVideoStream, SourceForbidden, SourceMissing
from kinodex.pipeline.images import display_size
from kinodex.pipeline.playlists import DEVICES, PLAYLIST_DEMUXERS, REFERRING_DEMUXERS, playlist_kind, refusal
from kinodex.pipeline.tone_mapping import is_hdr

if TYPE_CHECKING:
    from av import Packet, VideoFrame
    from av.container import InputContainer
    from av.video.stream import VideoStream

# Only local bytes, whatever the file names; and no presentation times that the demuxer guesses where it has none (for
# AVI with B-frames it guesses wrong).
OPEN_OPTIONS = {"protocol_whitelist": "file", "fflags": "-genpts"}
# FFmpeg opens these for almost any bytes or for one still picture; none of them is a video.
NO_VIDEO_FORMATS = frozenset({"tty", "image2", "bin", "xbin", "adf", "idf", "rawvideo"})


@dataclass(frozen=True, slots=True)
class VideoMetadata:
    """Metadata from the header of a video, corrected where the first frame knows better.

    `width_px` and `height_px` are as displayed: square pixels, after rotation. `fps` and
    `claimed_duration_s` are what the header says, which may be wrong; what really decoded is in
    `kinodex.pipeline.sample.ChunkSummary`. `rotation_deg` is counterclockwise. `earliest_s` is
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
    """Return True for the still picture that stands for an animation."""
    return stream.frames == 1 and stream.duration is None


def file_tags(container: InputContainer, stream: VideoStream) -> dict[str, Any]:
    """Return the columns that a file fills.

    They are those of its tags, and `other_streams`, the video streams beside the chosen one.
    """
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
        earliest_s=float(_earliest(container, stream, frame)),
        tags=file_tags(container, stream),
    )


def _earliest(container: InputContainer, stream: VideoStream, frame: VideoFrame) -> Fraction:
    """Find the earliest time at which pictures, sound or text begin; `frame` is the first of the pictures."""
    timed = [stream, *container.streams.audio, *container.streams.subtitles]
    starts = [each.start_time * each.time_base for each in timed if each.start_time is not None and each.time_base]
    return min([*starts, (frame.pts or 0) * time_base(stream)])


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
