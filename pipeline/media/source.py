"""The source of a video, opened where it lies: a local file, or one elsewhere that is read in parts as needed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any

from pipeline.decoding.video_stream import open_container, open_options, refuse_no_video
from pipeline.errors import NotAVideo
from pipeline.playlists import HEAD_BYTES, kind_by_head, refusal
from pipeline.sources.fetch import attempt, is_remote, local_file
from pipeline.sources.parts import open_parts

if TYPE_CHECKING:
    from av.container import InputContainer


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
