"""The file that a video of a library was read from, as it is now."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from index.library import Library
from index.rows import VideoRow
from index.store.filters import equal

if TYPE_CHECKING:
    from pipeline.sources.fetch import Stamp

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


def known_source(library: Library, video: VideoRow) -> tuple[str, tuple[int | None, str] | None]:
    """The place of a video's file, with the size and mark under which it was last read; None if they were not noted.

    A copy elsewhere stands for a file that was read as another video since; raises SourceMissing if there is none.
    """
    from pipeline.errors import SourceMissing

    columns = ["uri", "video_id", "size_bytes", "stamp", "seen_at"]
    here = library.tables.rows("sources", equal("uri", video.uri), columns).to_pylist()
    latest = max(here, key=lambda row: row["seen_at"], default=None)
    if latest is not None and latest["video_id"] != video.video_id:
        copies = library.tables.rows("sources", equal("video_id", video.video_id), columns).to_pylist()
        latest = min(copies, key=lambda row: row["uri"], default=None)
        if latest is None:
            raise SourceMissing(f"{video.uri}: holds another video by now; put the old one back to play it")
    return (video.uri, None) if latest is None else (latest["uri"], (latest["size_bytes"], latest["stamp"]))


def find_file(uri: str, known: tuple[int | None, str] | None) -> PlayFile:
    """Look at a source: its state and its first bytes. Blocks; for a thread.

    Raises:
        SourceMissing, SourceForbidden, SourceUnreachable: it cannot be read, is no regular file, or not in parts.
        PlaylistRefused: it shows what other files hold.
    """
    from pipeline.errors import SourceUnreachable
    from pipeline.playlists import kind_by_head, refusal
    from pipeline.sources.fetch import Source, is_remote, stamp

    now = stamp(Source(uri, title=""))
    head = first_bytes(uri)
    if kind := kind_by_head(head):
        raise refusal(uri, kind, is_remote=is_remote(uri))
    if now is None:
        raise SourceUnreachable(f"{uri}: its server does not say how large it is, or what state it has; copy it here")
    is_changed = known is not None and known != (now.size_bytes, now.mark)
    return PlayFile(uri, now.size_bytes, _etag(now), mime_of(head), is_changed)


def first_bytes(uri: str) -> bytes:
    """Read the first `HEAD_BYTES` of a source; raises as `find_file`."""
    from jobs.serve.play.file_bytes import open_local
    from pipeline.sources.fetch import attempt, is_remote

    if is_remote(uri):
        from pipeline.sources.parts import open_parts

        with open_parts(uri) as remote:
            return attempt(uri, lambda: remote.read(HEAD_BYTES))
    with open_local(uri) as file:
        return attempt(uri, lambda: file.read(HEAD_BYTES))


def mime_of(head: bytes) -> str | None:
    """Return the type of a file that browsers may play as it is, by its first bytes; None for any other."""
    if head[4:8] in MP4_BOXES:
        return "video/mp4"
    return "video/webm" if head.startswith(EBML) else None


def _etag(now: Stamp) -> str:
    """Strong validator of a file's state: made of its size and mark, and without what these may give away."""
    return f'"{hashlib.sha256(f"{now.size_bytes} {now.mark}".encode()).hexdigest()[:24]}"'
