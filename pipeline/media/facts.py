"""Facts about a media file that decide how a browser can play it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from kinodex.pipeline.decoding.clock import file_clock
from kinodex.pipeline.decoding.frame_times import time_base
from kinodex.pipeline.decoding.stream import choose_stream, open_container, read_metadata
from kinodex.pipeline.errors import NothingDecodes
from kinodex.pipeline.media.sound import choose_sound

if TYPE_CHECKING:
    from av import VideoFrame
    from av.container import InputContainer
    from av.video.stream import VideoStream

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
