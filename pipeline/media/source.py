"""The source of a video, opened where it lies: a local file, or one elsewhere that is read in parts as needed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any

from pipeline.decoding.video_stream import open_container, open_options, refuse_no_video
from pipeline.errors import NotAVideo, SourceUnreachable
from pipeline.playlists import HEAD_BYTES, kind_by_head, refusal
from pipeline.sources.fetch import attempt, filesystem_of, is_remote, local_file

if TYPE_CHECKING:
    from av.container import InputContainer

BLOCK_BYTES = 1 << 20
BLOCKS_KEPT = 32


@contextmanager
def open_source(uri: str) -> Iterator[InputContainer]:
    """Open a video's source for demuxing; one elsewhere is not fetched whole, and little of it is kept in memory.

    Raises:
        SourceMissing, SourceForbidden, SourceUnreachable: it cannot be read, or not in parts.
        PlaylistRefused, EmptyFile, NotAVideo: as `pipeline.decoding.video_stream.open_container`.
    """
    if not is_remote(uri):
        with open_container(local_file(uri), uri) as container:
            yield container
        return
    with open_parts(uri) as file, _demuxed(file, uri) as container:
        yield container


@contextmanager
def open_parts(uri: str) -> Iterator[IO[bytes]]:
    """Open a file elsewhere so that any part of it can be read; raises SourceUnreachable if its server sends none."""
    filesystem, path = attempt(uri, lambda: filesystem_of(uri))
    cache = {"cache_type": "blockcache", "cache_options": {"maxblocks": BLOCKS_KEPT}}
    file: IO[bytes] = attempt(uri, lambda: filesystem.open(path, "rb", block_size=BLOCK_BYTES, **cache))
    with file:
        if not file.seekable():
            raise SourceUnreachable(f"{uri}: its server sends whole files and no parts of them; copy the file here")
        yield file


def _demuxed(file: IO[bytes], uri: str) -> InputContainer:
    import av

    if kind := kind_by_head(attempt(uri, lambda: file.read(HEAD_BYTES))):
        raise refusal(uri, kind, is_remote=True)
    file.seek(0)
    options: dict[str, Any] = {"container_options": open_options(), "metadata_errors": "replace"}
    try:
        container = av.open(file, **options)
    except av.FFmpegError as error:
        if isinstance(error, MemoryError):  # says nothing about the file
            raise
        raise NotAVideo(f"{uri}: no video container that FFmpeg can read ({error.strerror})") from error
    return refuse_no_video(container, uri)
