"""Fetch one source from any filesystem: its stamp, its bytes in a local file, and its identity by them.

Filesystems are those of fsspec; what fails for a moment is tried again, and errors are made one line.
"""

from __future__ import annotations

import errno
import hashlib
import math
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache, partial
from os import SEEK_END
from pathlib import Path, PurePosixPath
from stat import S_ISDIR, S_ISREG
from typing import IO, TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

from kinodex.pipeline.errors import SourceChanged, SourceError, SourceForbidden, SourceMissing, SourceUnreachable
from kinodex.pipeline.origins import (
    ORIGINS,
    check_stored,
    is_named_origin,
    keep_at,
    origin_of,
    plain_web,
    web_settings,
)
from kinodex.pipeline.playlists import playlist_kind, playlist_members, refusal

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

# State of a file as its filesystem shows it: equal states show, without reading, that nobody wrote to it between.


@dataclass(frozen=True, slots=True)
class FileState:
    """State of the file at `path`: its size, its times of change in ns, its inode.

    A file that is replaced by renaming, written in place or restored to its old time differs in one of them: `ctime_ns`
    is set by the kernel alone. The device is left out, because other machines number theirs otherwise.
    """

    path: str
    size_bytes: int
    mtime_ns: int
    ctime_ns: int
    inode: int


def file_state(path: Path) -> FileState:
    """Read the state of a file, opened, for network file systems ask their server only then; raises OSError."""
    with path.open("rb") as file:
        info = os.fstat(file.fileno())
    return FileState(str(path), info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino)


def differ_by_inode_alone(before: FileState, after: FileState) -> bool:
    """True if all but the inode is common, which some network filesystems forget: only the bytes decide then."""
    return before != after == replace(before, inode=after.inode)


ATTEMPTS = 4
FIRST_WAIT_S, JITTER_S, LONGEST_WAIT_S = 0.2, 1.0, 5.0
"""Before the next try: doubled each time, with up to a jitter beside it."""
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
SILENCE_S = 30.0
BLOCK_BYTES = 1 << 20
CHANGE_MARKS = ("etag", "contentmd5", "generation", "updated", "lastmodified", "modified", "mtime", "created")
"""Names that filesystems have for a mark that changes with a file's bytes, the surest first; case, "-", "_" vary."""
FOLDER_PREFIX = "kinodex-"
LOCK_FILE = ".in-use"
"""A file in every folder of `scratch_folder`, locked for as long as the process lives that made it."""

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Stamp:
    """Size of a file and a mark that changes with its bytes: equal stamps show, without reading, an unchanged file."""

    size_bytes: int
    mark: str


@dataclass(frozen=True, slots=True)
class Source:
    """One video to read: an absolute local path or a URI, and the subtitle files found beside it.

    `id` is its owner's name for it, if a manifest has one; `stamp` comes from the listing of a remote folder. A web
    server that sends nothing for `timeout_s` is given up, in each try. `is_named` if the user named it: an address that
    stands in a library or a list gets no credentials (see `origins`).
    """

    uri: str
    title: str
    sidecars: tuple[str, ...] = ()
    id: str | None = None
    stamp: Stamp | None = field(default=None, compare=False)
    timeout_s: float = field(default=SILENCE_S, compare=False)
    is_named: bool = field(default=False, compare=False)


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


class Interrupted(Exception):
    """Nobody wants the bytes any more. Raised by a `Check` alone, and passed on as it is."""


Check = Callable[[], None]
"""Is called with every block that is read or fetched, and may raise Interrupted."""


def go_on() -> None:
    """Check nothing."""


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
    """The path of a local source; raises SourceMissing for a pipe, socket or device, whose bytes may never end."""
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


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Make a temporary folder for fetched videos, deleted at the end; first delete those of processes that were killed.

    `flock` and no library: the lock has to be held before another process can see its file, and deleting must not
    create one.
    """
    from fcntl import LOCK_EX, flock  # here, because the query side imports this module and may be where there is none

    _delete_abandoned()
    with tempfile.TemporaryDirectory(prefix=FOLDER_PREFIX) as name, (Path(name) / "new").open("w") as file:
        flock(file, LOCK_EX)
        Path(file.name).rename(Path(name) / LOCK_FILE)  # locked before another process can find it
        yield Path(name)


def stamp(source: Source) -> Stamp | None:
    """Return the stamp of a source: from its listing, else by a stat of the file or object, without opening it.

    None where the filesystem gives no size or no mark, so that only reading shows whether the bytes are the same.

    Raises SourceMissing, SourceForbidden, SourceUnreachable: it cannot be looked up.
    """
    if source.stamp is not None:
        return source.stamp
    if not is_remote(source.uri):
        info = attempt(source.uri, Path(source.uri).stat)
        return local_stamp(info.st_size, info.st_mtime_ns)
    filesystem, path = attempt(source.uri, lambda: filesystem_of(source.uri, source.timeout_s, source.is_named))
    return stamp_from_info(attempt(source.uri, lambda: filesystem.info(path)))


def local_stamp(size_bytes: int, mtime_ns: int) -> Stamp:
    return Stamp(size_bytes, str(mtime_ns))


def stamp_from_info(info: Mapping[str, Any]) -> Stamp | None:
    """Make a stamp of fsspec's information about a file; each backend names its marks its own way."""
    normalized = {key.lower().replace("-", "").replace("_", ""): value for key, value in info.items()}
    mark = next((normalized[name] for name in CHANGE_MARKS if normalized.get(name)), None)
    if mark is None or normalized.get("size") is None:
        return None
    if isinstance(mark, datetime):  # a listing may give in seconds what a stat gives as a date
        mark = mark.timestamp()
    return Stamp(int(normalized["size"]), str(mark).strip('"'))


def mount_of(uri: str) -> str | None:
    """Find the mount point of the file system that a local file lies in; None if it is elsewhere, or not there."""
    folder = Path(os.path.realpath(uri)).parent
    return None if is_remote(uri) or not folder.is_dir() else _mount_of(folder)


@lru_cache(4096)
def _mount_of(folder: Path) -> str:
    return next((str(each) for each in (folder, *folder.parents) if each.is_mount()), "/")


def is_remote(uri: str) -> bool:
    """True if a source's URI has to be fetched; anything else is a path of this machine."""
    return "://" in uri


def filesystem_of(uri: str, timeout_s: float = SILENCE_S, is_named: bool = False) -> tuple[AbstractFileSystem, str]:
    """The filesystem of a URI or local path, and the path in it; a web server may be silent for `timeout_s`.

    One that the user did not name gets no credentials that are configured for the web; raises SourceForbidden for one
    of a protocol that nobody named.
    """
    from fsspec.core import url_to_fs
    from fsspec.implementations.local import LocalFileSystem

    if not is_remote(uri):  # not by `url_to_fs`, for which "::" in a name joins two filesystems
        local = Path(uri)
        with suppress(RuntimeError):  # a file that begins with ~ stays, and the home of a user who is not there
            local = local if local.exists() else local.expanduser()
        return LocalFileSystem(), os.path.normpath(local.absolute())
    is_named = is_named or is_named_origin(uri)
    if not is_named:
        check_stored(uri)
    if not uri.startswith(("http://", "https://")):
        filesystem, path = url_to_fs(uri)
        return filesystem, path
    if not is_named:
        return plain_web()(client_kwargs=_web_options(timeout_s)), uri
    configured = web_settings()
    names = frozenset(configured.get("headers", {}))
    usual = _web_options(timeout_s)
    kept_at_home = (keep_at(origin_of(uri), names), *usual["middlewares"])
    options = {**usual, **configured, "middlewares": kept_at_home, "auto_decompress": False}
    filesystem, path = url_to_fs(uri, client_kwargs=options)
    return filesystem, path


def _web_options(timeout_s: float) -> dict[str, Any]:
    """Make options of a web client: a limit of silence and of an answer, and none for the whole."""
    from aiohttp import ClientTimeout

    from kinodex.pipeline.web_limits import in_time

    limit = ClientTimeout(total=None, sock_connect=timeout_s, sock_read=timeout_s)
    return {"timeout": limit, "auto_decompress": False, "middlewares": (in_time(timeout_s),)}


def attempt(uri: str, action: Callable[[], Result]) -> Result:
    """Do one thing to a filesystem, retry after a failure that may be temporary, and raise failure as a SourceError."""
    from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_exponential_jitter

    attempts = Retrying(
        retry=retry_if_exception(_is_temporary),
        stop=stop_after_attempt(ATTEMPTS),
        wait=wait_exponential_jitter(multiplier=FIRST_WAIT_S, max=LONGEST_WAIT_S, jitter=JITTER_S),
        reraise=True,
    )
    try:
        return attempts(action)
    except Interrupted:
        raise
    # Each fsspec backend raises its own client library's errors, which have no common base but Exception;
    # `action` is a call into such a backend and nothing else.
    except Exception as error:
        raise source_error(uri, error) from error


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


def _delete_abandoned() -> None:
    from fcntl import LOCK_EX, LOCK_NB, flock

    for path in Path(tempfile.gettempdir()).glob(f"{FOLDER_PREFIX}*/{LOCK_FILE}"):
        try:
            with path.open() as file:
                flock(file, LOCK_EX | LOCK_NB)
                shutil.rmtree(path.parent)
        except OSError:
            continue  # its process is alive, or it is another user's, or another process is deleting it


def source_error(uri: str, error: Exception) -> SourceError:
    """Make the error of this room for one of a file system."""
    if isinstance(error, SourceError):
        return error
    if isinstance(error, FileNotFoundError) and not is_absent(error) and isinstance(error.__cause__, Exception):
        error = error.__cause__
    if _is_timeout(error):
        return SourceUnreachable(
            f"{uri}: its server sent nothing for too long, in {ATTEMPTS} tries; try again later, or allow more with "
            "--source-timeout"
        )
    if isinstance(error, OSError) and error.errno in NO_ROOM:
        return SourceUnreachable(f"{uri}: no room is left for it in {tempfile.gettempdir()}; make room, or set TMPDIR")
    cause = " ".join(f"{type(error).__name__}: {error}".split())
    if isinstance(error, FileNotFoundError):
        return SourceMissing(f"{uri}: nothing is there; check the name")
    if isinstance(error, IsADirectoryError):
        return SourceMissing(f"{uri}: is a folder, not a file; name a video in it")
    if isinstance(error, PermissionError) or getattr(error, "status", None) in (401, 403):
        return SourceForbidden(f"{uri}: reading is not permitted; check rights and credentials{_kept_nowhere(uri)}")
    if isinstance(error, ImportError):
        return SourceUnreachable(f"{uri}: this protocol needs a package that is missing ({cause}); install it")
    if isinstance(error, ValueError):
        return SourceUnreachable(f"{uri}: not an address that fsspec understands ({cause}); check the protocol")
    return SourceUnreachable(f"{uri}: cannot be read ({cause}); check the address, or try again later")


def _kept_nowhere(uri: str) -> str:
    """Say where the right to read a web address can come from: what grants it in the address itself is not stored."""
    if not uri.startswith(("http://", "https://")):
        return ""
    return (
        "; those in an address are not kept: name the source again with them, or give them by FSSPEC_HTTP and the "
        f"origin by {ORIGINS}"
    )


def is_absent(error: BaseException) -> bool:
    """True if a file system says that nothing is there: fsspec says it too of a web server that gives no answer."""
    cause = error.__cause__
    if not isinstance(error, FileNotFoundError) or isinstance(cause, OSError | None):
        return isinstance(error, FileNotFoundError) and isinstance(cause, FileNotFoundError | None)
    from_web = type(cause).__module__.startswith("aiohttp")
    return not from_web or getattr(cause, "status", None) in (404, 410)


def _is_timeout(error: BaseException | None) -> bool:
    return isinstance(error, TimeoutError) or (isinstance(error, FileNotFoundError) and _is_timeout(error.__cause__))


def _is_temporary(error: BaseException) -> bool:
    """Check that a retry may help: after network and server trouble, not after a lasting failure."""
    if _is_timeout(error):
        return True
    absent = FileNotFoundError, IsADirectoryError, NotADirectoryError
    lasting = *absent, PermissionError, ImportError, ValueError, SourceError
    status = getattr(error, "status", None)
    if not isinstance(error, Exception) or isinstance(error, Interrupted):
        return False  # Ctrl-C is for the whole
    if isinstance(error, OSError) and error.errno in NO_ROOM:
        return False
    return not isinstance(error, lasting) and (status is None or status >= 500 or status == 429)


# A file elsewhere, read in parts as they are needed: it is never fetched whole.

BLOCKS_KEPT = 32


@contextmanager
def open_parts(uri: str) -> Iterator[IO[bytes]]:
    """Open a file elsewhere to read any part of it; raises a SourceError, also where only whole files are sent."""
    filesystem, path = attempt(uri, lambda: filesystem_of(uri))
    cache = {"cache_type": "blockcache", "cache_options": {"maxblocks": BLOCKS_KEPT}}
    file: IO[bytes] = attempt(uri, lambda: filesystem.open(path, "rb", block_size=BLOCK_BYTES, **cache))
    with file:
        if not file.seekable() or not attempt(uri, lambda: _sends_parts(file)):
            raise SourceUnreachable(f"{uri}: its server sends whole files and no parts of them; copy the file here")
        yield file


def _sends_parts(file: IO[bytes]) -> bool:
    """Read the end, which fsspec refuses where a server sends more than was asked for."""
    try:
        file.seek(max(0, file.seek(0, SEEK_END) - 1))
        file.read(1)
    except ValueError:
        return False
    file.seek(0)
    return True
