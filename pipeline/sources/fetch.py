"""Fetch the bytes of a source to a local file, and identify a video by them."""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from stat import S_ISDIR, S_ISREG
from uuid import uuid4

from pipeline.errors import SourceMissing
from pipeline.sources.discover import Source
from pipeline.sources.filesystem import attempt, filesystem_of, is_remote

BLOCK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class FetchedVideo:
    """A source with its bytes in a local file at `path`."""

    source: Source
    path: str
    video_id: str
    size_bytes: int


def identify(source: Source, folder: Path) -> FetchedVideo:
    """Identify a source by its bytes; a remote one is first fetched to a file of its own in `folder`.

    Raises:
        SourceMissing, SourceForbidden, SourceUnreachable: the bytes cannot be read; nothing is left in `folder`.
    """
    path = _fetch(source.uri, folder) if is_remote(source.uri) else local_file(source.uri)
    video_id = attempt(source.uri, lambda: content_id(path))
    return FetchedVideo(source, str(path), video_id, path.stat().st_size)


@contextmanager
def local_copy(source: Source) -> Iterator[Path]:
    """Provide the path of a source's bytes: the file itself, or a download that is deleted on leaving.

    A download streams to a temporary file and is retried after a failure that may be temporary.

    Raises:
        SourceMissing, SourceForbidden, SourceUnreachable: the bytes cannot be read.
    """
    if not is_remote(source.uri):
        path = local_file(source.uri)
        attempt(source.uri, lambda: path.open("rb").close())
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="kinodex-") as folder:
        path = Path(folder) / f"video{_suffix(source.uri)}"
        _download(source.uri, path)
        yield path


def local_file(uri: str) -> Path:
    """Return the path of a local source; raises SourceMissing for a pipe, socket or device, whose bytes may never end.

    A path that cannot be looked up raises as `local_copy`.
    """
    path = Path(uri)
    if re.search(r"\\x[89a-f][0-9a-f]", uri) and not path.exists():
        raise SourceMissing(f"{uri}: cannot be named in a library, because its name is not UTF-8; rename it")
    mode = attempt(uri, path.stat).st_mode
    if not S_ISREG(mode) and not S_ISDIR(mode):
        raise SourceMissing(f"{uri}: is no regular file, but a pipe, a socket or a device; name a file")
    return path


def read_bytes(uri: str) -> bytes:
    """Read the whole of a small file; raises as `local_copy`."""
    with local_copy(Source(uri, uri)) as path:
        return path.read_bytes()


def content_id(path: Path) -> str:
    """Compute the identity of a video: the first 32 hex digits of the SHA-256 of its bytes, whatever its name."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()[:32]


def _fetch(uri: str, folder: Path) -> Path:
    path = folder / f"{uuid4().hex}{_suffix(uri)}"
    try:
        _download(uri, path)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return path


def _download(uri: str, path: Path) -> None:
    filesystem, remote = attempt(uri, lambda: filesystem_of(uri))
    attempt(uri, lambda: filesystem.get_file(remote, str(path)))


def _suffix(uri: str) -> str:
    """Return the suffix of a remote file's name, which some demuxers need; of a web address without its query."""
    return PurePosixPath(re.split(r"[?#]", uri)[0]).suffix
