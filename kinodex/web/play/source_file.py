"""The file that a video of a library was read from, as it is now."""

from __future__ import annotations

import hashlib
import os
from contextlib import AbstractContextManager
from dataclasses import dataclass
from stat import S_ISREG
from typing import IO

from kinodex.index.library import Library
from kinodex.index.rows import VideoRow
from kinodex.pipeline.errors import SourceMissing, SourceUnreachable

HEAD_BYTES = 4096
MP4_BOXES = (b"ftyp", b"styp", b"moov", b"mdat", b"free", b"skip", b"wide", b"pnot")
"""Types of the box that an MP4 or QuickTime file begins with (ISO/IEC 14496-12, 4.2), four bytes after its length."""
EBML = b"\x1a\x45\xdf\xa3"
CHANGED = "the file has changed since it was indexed, so times and frames may differ"


@dataclass(frozen=True, slots=True)
class PlayFile:
    """A source that is there: `uri` is the library's, `is_changed` if it is no longer what was indexed."""

    uri: str
    size_bytes: int
    etag: str
    mime: str | None
    is_changed: bool
    """`mime` is None where the first bytes are of no container that browsers play as it is: those are never sent."""


def known_sources(library: Library, video: VideoRow) -> list[tuple[str, tuple[int | None, str] | None]]:
    """Return a video's address and the copies that an ingest found, each with size and mark as it was read, if
    noted.
    """
    places = [each for each in library.ingest_log.places(video) if each.video_id == video.video_id]
    return [(each.uri, (each.size_bytes, each.stamp) if each.stamp else None) for each in places]


def find_file(uri: str, known: tuple[int | None, str] | None) -> PlayFile:
    """Look at a source: its state, its first bytes. Blocks; for a thread. Raises a SourceError or PlaylistRefused."""
    from kinodex.pipeline.filesystems import attempt, is_remote
    from kinodex.pipeline.playlists import kind_by_head, refusal
    from kinodex.pipeline.source import Source
    from kinodex.pipeline.stamps import stamp

    now = stamp(Source(uri, title=""))
    with open_source(uri) as file:
        head = attempt(uri, lambda: file.read(HEAD_BYTES))
    if kind := kind_by_head(head):
        raise refusal(uri, kind, is_remote=is_remote(uri))
    if now is None:
        raise SourceUnreachable(f"{uri}: its server does not say how large it is, or what state it has; copy it here")
    is_changed = known is not None and known != (now.size_bytes, now.mark)
    # Strong: made of the file's size and mark, and without what these may give away.
    etag = f'"{hashlib.sha256(f"{now.size_bytes} {now.mark}".encode()).hexdigest()[:24]}"'
    mime = "video/mp4" if head[4:8] in MP4_BOXES else "video/webm" if head.startswith(EBML) else None
    return PlayFile(uri, now.size_bytes, etag, mime, is_changed)


def open_source(uri: str) -> AbstractContextManager[IO[bytes]]:
    from kinodex.pipeline.filesystems import is_remote
    from kinodex.pipeline.remote_parts import open_parts

    return open_parts(uri) if is_remote(uri) else open_local(uri)


def open_local(uri: str) -> IO[bytes]:
    """Open a regular file, never waiting for a pipe's other end; raises SourceMissing or SourceForbidden."""
    from kinodex.pipeline.fetch import local_file
    from kinodex.pipeline.filesystems import attempt

    path = local_file(uri)
    file = attempt(uri, lambda: os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb"))
    if not S_ISREG(os.fstat(file.fileno()).st_mode):  # it was replaced between the look and the opening
        file.close()
        raise SourceMissing(f"{uri}: is no regular file; name a file")
    return file
