"""The source of a video: open it for demuxing, and decode the frames of one stream."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from kinodex.pipeline.decoding.clock import UNBROKEN, Clock
from kinodex.pipeline.decoding.pixel_aspects import PixelAspects
from kinodex.pipeline.decoding.stream import demuxed, open_container
from kinodex.pipeline.fetch import local_file
from kinodex.pipeline.filesystems import attempt, is_remote
from kinodex.pipeline.playlists import HEAD_BYTES, kind_by_head, refusal
from kinodex.pipeline.remote_parts import open_parts

if TYPE_CHECKING:
    from av.container import InputContainer


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
