"""Fetch one source from any filesystem: its bytes in a local file, and its identity by them."""

from __future__ import annotations

import hashlib
import math
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath
from stat import S_ISDIR, S_ISREG
from uuid import uuid4

from kinodex.pipeline.errors import SourceChanged, SourceMissing
from kinodex.pipeline.file_state import FileState, differ_by_inode_alone, file_state
from kinodex.pipeline.filesystems import Check, attempt, filesystem_of, go_on, is_remote
from kinodex.pipeline.playlists import playlist_kind, playlist_members, refusal
from kinodex.pipeline.scratch import FOLDER_PREFIX
from kinodex.pipeline.source import Source
from kinodex.pipeline.stamps import local_stamp

BLOCK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class FetchedVideo:
    """A source with its bytes in a local file at `path`; `states`: of it and a playlist's members at that time."""

    source: Source
    path: str
    video_id: str
    size_bytes: int
    states: tuple[FileState, ...] = ()

    @property
    def is_playlist(self) -> bool:
        """True if other files hold what the one at `path` shows."""
        return len(self.states) > 1


def identify(source: Source, folder: Path, allow_playlists: bool = False, check: Check = go_on) -> FetchedVideo:
    """Identify a source by its bytes; a remote one is first fetched to a file of its own in `folder`.

    A playlist is identified by its bytes and those of its members, where it is allowed. The stamp of a local source is
    that of the bytes which were read, even if a listing saw earlier ones; a playlist has none, for its members change
    without it.

    Raises SourceMissing, SourceForbidden, SourceUnreachable: the bytes cannot be read; nothing is left in `folder`;
    SourceChanged: somebody writes to the file; PlaylistRefused: it is a playlist that is not allowed, that lies
    elsewhere, or as `playlist_members`; Interrupted by `check`.
    """
    if is_remote(source.uri):
        path = _fetch(source, folder, check)
        if kind := attempt(source.uri, lambda: playlist_kind(path)):
            path.unlink()
            raise refusal(source.uri, kind, is_remote=True)
        paths: tuple[Path, ...] = (path,)
    else:
        path = local_file(source.uri)
        paths = (path, *_members(path, source.uri, allow_playlists))
    states = tuple(attempt(source.uri, partial(file_state, each)) for each in paths)
    video_id = attempt(source.uri, lambda: _identity(paths, check))
    if not is_remote(source.uri):
        stamp = local_stamp(states[0].size_bytes, states[0].mtime_ns) if len(paths) == 1 else None
        source = replace(source, stamp=stamp)
    video = FetchedVideo(source, str(path), video_id, sum(each.size_bytes for each in states), states)
    check_unchanged(video)
    return video


def check_unchanged(video: FetchedVideo) -> None:
    """Check that a video's files are as when it was identified: what was read since belongs to its id.

    Raises SourceChanged, or SourceMissing, SourceForbidden, SourceUnreachable.
    """
    uri, paths = video.source.uri, [Path(each.path) for each in video.states]
    after = [attempt(uri, partial(file_state, path)) for path in paths]
    changes = [pair for pair in zip(video.states, after, strict=True) if pair[0] != pair[1]]
    if not changes:
        return
    renumbered = all(differ_by_inode_alone(*pair) for pair in changes)
    if renumbered and attempt(uri, lambda: _identity(paths)) == video.video_id:
        return
    raise SourceChanged(
        f"{uri}: the file was changed or replaced while it was read; ingest it again once nobody writes to it"
    )


def _members(path: Path, uri: str, allow_playlists: bool) -> tuple[Path, ...]:
    kind = attempt(uri, lambda: playlist_kind(path))
    if kind is None:
        return ()
    if not allow_playlists:
        raise refusal(uri, kind)
    return playlist_members(path, kind, uri)


def _identity(paths: Sequence[Path], check: Check = go_on) -> str:
    ids = [content_id(path, check) for path in paths]
    return ids[0] if len(ids) == 1 else hashlib.sha256("".join(ids).encode()).hexdigest()[:32]


@contextmanager
def local_copy(source: Source) -> Iterator[Path]:
    """Provide the path of a source's bytes: the file itself, or a download that is deleted on leaving.

    Raises SourceMissing, SourceForbidden or SourceUnreachable.
    """
    if not is_remote(source.uri):
        path = local_file(source.uri)
        attempt(source.uri, lambda: path.open("rb").close())
        yield path
        return
    with tempfile.TemporaryDirectory(prefix=FOLDER_PREFIX) as folder:
        path = Path(folder) / f"video{_suffix(source.uri)}"
        _download(source, path)
        yield path


def local_file(uri: str) -> Path:
    """Return the path of a local source.

    Raises SourceMissing for a pipe, socket or device, whose bytes may never end.
    """
    path = Path(uri)
    if re.search(r"\\x[89a-f][0-9a-f]", uri) and not path.exists():
        raise SourceMissing(f"{uri}: cannot be named in a library, because its name is not UTF-8; rename it")
    mode = attempt(uri, path.stat).st_mode
    if not S_ISREG(mode) and not S_ISDIR(mode):
        raise SourceMissing(f"{uri}: is no regular file, but a pipe, a socket or a device; name a file")
    return path


def content_id(path: Path, check: Check = go_on) -> str:
    """Compute the identity of a video: the first 32 hex digits of the SHA-256 of its bytes, whatever its name."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK_BYTES):
            check()
            digest.update(block)
    return digest.hexdigest()[:32]


def _fetch(source: Source, folder: Path, check: Check) -> Path:
    path = folder / f"{uuid4().hex}{_suffix(source.uri)}"
    try:
        _download(source, path, check)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return path


def _download(source: Source, path: Path, check: Check = go_on) -> None:
    from kinodex.pipeline.web_limits import Pace

    filesystem, remote = attempt(source.uri, lambda: filesystem_of(source.uri, source.timeout_s, source.is_named))
    patience_s = source.timeout_s if source.uri.startswith(("http://", "https://")) else math.inf
    attempt(
        source.uri,
        lambda: filesystem.get_file(remote, str(path), callback=Pace(source.uri, path.parent, patience_s, check)),
    )


def _suffix(uri: str) -> str:
    return PurePosixPath(re.split(r"[?#]", uri)[0]).suffix
