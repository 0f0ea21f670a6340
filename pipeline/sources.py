"""Where videos come from: files, folders, globs and fsspec URIs; found, fetched and identified."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, TypeVar

from pipeline.errors import SourceError, SourceForbidden, SourceMissing, SourceUnreachable

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

# fmt: off
VIDEO_SUFFIXES = frozenset([
    ".3g2", ".3gp", ".asf", ".avi", ".divx", ".f4v", ".flv", ".gif", ".m2ts", ".m2v", ".m4v", ".mkv", ".mov",
    ".mp4", ".mpeg", ".mpg", ".mts", ".mxf", ".ogm", ".ogv", ".qt", ".rm", ".rmvb", ".ts", ".vob", ".webm",
    ".wmv", ".y4m",
])
# fmt: on
SUBTITLE_SUFFIXES = frozenset([".srt", ".vtt", ".ass", ".ssa"])
CHUNK_BYTES = 1 << 20
ATTEMPTS = 4

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Source:
    """One video to read: an absolute local path or a URI, and the subtitle files found beside it."""

    uri: str
    title: str
    sidecars: tuple[str, ...] = ()


def list_sources(arguments: Sequence[str]) -> list[Source]:
    """The videos that files, folders (in depth), globs and fsspec URIs name; sorted by URI, each once.

    A file named outright is taken whatever its suffix; of a folder or a glob, files with a video suffix.
    A web address is taken as it is: the web has no listings, and whether it answers shows when it is read.

    Raises:
        SourceMissing: an argument names or matches no video.
        SourceForbidden, SourceUnreachable: a remote argument cannot be looked up.
    """
    found = {source.uri: source for argument in arguments for source in _look_up(argument)}
    return [found[uri] for uri in sorted(found)]


@contextmanager
def local_copy(source: Source) -> Iterator[Path]:
    """The path of a source's bytes: the file itself, or a download that is deleted on leaving.

    A download streams to a temporary file and is retried when the failure may pass.

    Raises:
        SourceMissing, SourceForbidden, SourceUnreachable: the bytes cannot be had.
    """
    if not is_remote(source.uri):
        path = Path(source.uri)
        _attempt(source.uri, lambda: path.open("rb").close())
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="kinodex-") as folder:
        path = Path(folder) / f"video{_name(source.uri).suffix}"
        _attempt(source.uri, lambda: _download(source.uri, path))
        yield path


def content_id(path: Path) -> str:
    """The identity of a video: the first 32 hex digits of the SHA-256 of its bytes, whatever its name."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()[:32]


def read_bytes(uri: str) -> bytes:
    """The whole of a small file; raises as `local_copy`."""
    with local_copy(Source(uri, uri)) as path:
        return path.read_bytes()


def is_remote(uri: str) -> bool:
    """Whether a source's URI has to be fetched; anything else is a path of this machine."""
    return "://" in uri


def sidecar_language(uri: str) -> str | None:
    """The language in a sidecar's name: `film.en.vtt` and `film.pt-BR.sdh.srt` have one, `film.srt` not."""
    for part in PurePosixPath(uri).name.split(".")[1:-1]:
        if re.fullmatch(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*", part):
            return part
    return None


def _look_up(argument: str) -> list[Source]:
    """Sources under one argument; a name that exists is taken literally, even if it looks like a glob."""
    filesystem, path = _attempt(argument, lambda: _filesystem(argument))
    if {"http", "https"} & set(_protocols(filesystem)):
        return [Source(argument, _name(argument).stem)]
    kind = _attempt(argument, lambda: _kind(filesystem, path))
    if kind == "file":
        paths = [path]
    elif kind == "directory":
        paths = _videos(_attempt(argument, lambda: filesystem.find(path)), below=path)
        _require_some(paths, f"{argument}: a folder without a video")
    elif re.search(r"[*?\[]", argument):
        matches = _attempt(argument, lambda: [name for name in filesystem.glob(path) if filesystem.isfile(name)])
        paths = _videos(matches)
        _require_some(paths, f"{argument}: matches {len(matches)} files but no video")
    else:
        raise SourceMissing(f"{argument}: no such file or folder; give a file, a folder, a glob or a URI")
    names = {folder: _names_in(filesystem, folder) for folder in {_folder(path) for path in paths}}
    return [_source(filesystem, path, names[_folder(path)]) for path in paths]


def _kind(filesystem: AbstractFileSystem, path: str) -> str | None:
    try:
        return str(filesystem.info(path)["type"])
    except FileNotFoundError:
        return None


def _require_some(paths: Sequence[str], otherwise: str) -> None:
    if not paths:
        raise SourceMissing(f"{otherwise}; these suffixes count: {' '.join(sorted(VIDEO_SUFFIXES))}")


def _is_video(path: str) -> bool:
    return PurePosixPath(path).suffix.lower() in VIDEO_SUFFIXES


def _videos(paths: Sequence[str], below: str = "") -> list[str]:
    """Paths with a video suffix, none of them hidden (such as the `._film.mp4` that macOS leaves)."""
    return [path for path in paths if _is_video(path) and not re.search(r"(^|/)\.", path[len(below) :])]


def _source(filesystem: AbstractFileSystem, path: str, names: Sequence[str]) -> Source:
    sidecars = [f"{_folder(path)}/{name}" for name in _sidecars(PurePosixPath(path).name, names)]
    if "file" not in _protocols(filesystem):
        path, *sidecars = (filesystem.unstrip_protocol(name) for name in (path, *sidecars))
    return Source(path, PurePosixPath(path).stem, tuple(sidecars))


def _name(uri: str) -> PurePosixPath:
    """The last part of a URI without what a web server is asked (`?...`) or told (`#...`)."""
    return PurePosixPath(re.sub(r"(?<=.)[?#].*" if is_remote(uri) else r"$^", "", uri).rpartition("/")[2])


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _names_in(filesystem: AbstractFileSystem, folder: str) -> list[str]:
    """File names in a folder; none where the filesystem may not list it."""
    try:
        return sorted(PurePosixPath(path).name for path in filesystem.ls(folder, detail=False))
    except (OSError, NotImplementedError):
        return []


def _sidecars(video: str, names: Sequence[str]) -> list[str]:
    """Subtitle files named after a video: its stem, perhaps tags such as `.en.forced`, a subtitle suffix.

    A file that fits two videos (`film.mp4`, `film.trailer.mp4`) belongs to the longer name.
    """
    stem = PurePosixPath(video).stem + "."
    longer = tuple(
        other for name in names if _is_video(name) and (other := PurePosixPath(name).stem + ".").startswith(stem)
    )
    longer = tuple(other for other in longer if other != stem)
    fitting = [name for name in names if name.startswith(stem) and not name.startswith(longer)]
    return [name for name in fitting if PurePosixPath(name).suffix.lower() in SUBTITLE_SUFFIXES]


def _filesystem(uri: str) -> tuple[AbstractFileSystem, str]:
    from fsspec.core import url_to_fs

    if not is_remote(uri):
        uri = os.path.normpath(Path(uri).expanduser().absolute())
    filesystem, path = url_to_fs(uri)
    return filesystem, path


def _protocols(filesystem: AbstractFileSystem) -> tuple[str, ...]:
    return (filesystem.protocol,) if isinstance(filesystem.protocol, str) else tuple(filesystem.protocol)


def _download(uri: str, path: Path) -> None:
    filesystem, remote = _filesystem(uri)
    filesystem.get_file(remote, str(path))


def _attempt(uri: str, action: Callable[[], Result]) -> Result:
    """Do one thing to a filesystem, again if its failure may pass, and report failure as a SourceError."""
    from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_exponential_jitter

    attempts = Retrying(
        retry=retry_if_exception(_may_pass),
        stop=stop_after_attempt(ATTEMPTS),
        wait=wait_exponential_jitter(multiplier=0.2, max=5),
        reraise=True,
    )
    try:
        return attempts(action)
    # Each fsspec backend raises its own client library's errors, which have no common base but Exception;
    # `action` is a call into such a backend and nothing else.
    except Exception as error:
        raise _source_error(uri, error) from error


def _source_error(uri: str, error: Exception) -> SourceError:
    got = " ".join(f"{type(error).__name__}: {error}".split())
    if isinstance(error, FileNotFoundError):
        return SourceMissing(f"{uri}: nothing is there; check the name")
    if isinstance(error, IsADirectoryError):
        return SourceMissing(f"{uri}: is a folder, not a file; name a video in it")
    if isinstance(error, PermissionError) or getattr(error, "status", None) in (401, 403):
        return SourceForbidden(f"{uri}: reading is not permitted; check rights and credentials")
    if isinstance(error, ImportError):
        return SourceUnreachable(f"{uri}: this protocol needs a package that is missing ({got}); install it")
    if isinstance(error, ValueError):
        return SourceUnreachable(f"{uri}: not an address that fsspec understands ({got}); check the protocol")
    return SourceUnreachable(f"{uri}: cannot be read ({got}); check the address, or try again later")


def _may_pass(error: BaseException) -> bool:
    """Whether trying again is worth it: for network and server trouble, not for what cannot change."""
    lasting = (
        FileNotFoundError,
        PermissionError,
        IsADirectoryError,
        NotADirectoryError,
        ImportError,
        ValueError,
    )
    status = getattr(error, "status", None)
    return not isinstance(error, lasting) and (status is None or status >= 500 or status == 429)
