"""Where videos come from: files, folders, globs and fsspec URIs; found, fetched and identified."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, TypeVar

from pipeline.errors import SourceError, SourceForbidden, SourceMissing, SourceUnreachable

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

VIDEO_SUFFIXES = frozenset(
    ".3g2 .3gp .asf .avi .divx .f4v .flv .m2ts .m2v .m4v .mjpeg .mkv .mov .mp4 .mpeg .mpg .mts .mxf .ogm .ogv "
    ".qt .rm .rmvb .ts .vob .webm .wmv .y4m".split()
)
SUBTITLE_SUFFIXES = frozenset({".srt", ".vtt", ".ass", ".ssa"})
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
    """The videos that files, folders (searched in depth), globs and fsspec URIs name; sorted by URI, each once.

    A file named outright is taken whatever its suffix; a folder or a glob gives its files with a video suffix.

    Raises:
        SourceMissing: an argument names or matches no video.
        SourceForbidden, SourceUnreachable: a remote argument cannot be looked up.
    """
    found: dict[str, Source] = {}
    for argument in arguments:
        for source in _look_up(argument):
            found[source.uri] = source
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
        path = Path(folder) / f"video{PurePosixPath(source.uri).suffix}"
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
    if is_remote(uri):
        return _attempt(uri, lambda: _filesystem(uri)[0].cat_file(_filesystem(uri)[1]))
    return _attempt(uri, Path(uri).read_bytes)


def is_remote(uri: str) -> bool:
    return "://" in uri


def sidecar_language(uri: str) -> str | None:
    """The language tag in a sidecar's name: `film.en.vtt` and `film.pt-BR.forced.srt` have one, `film.srt` not."""
    for part in PurePosixPath(uri).name.split(".")[1:-1]:
        if re.fullmatch(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*", part):
            return part
    return None


def _look_up(argument: str) -> list[Source]:
    if argument.startswith("file://"):
        argument = argument.removeprefix("file://")
    if is_remote(argument):
        filesystem, path = _attempt(argument, lambda: _filesystem(argument))
        return _attempt(argument, lambda: _find(filesystem, path, argument))
    from fsspec.implementations.local import LocalFileSystem

    return _find(LocalFileSystem(), os.path.abspath(os.path.expanduser(argument)), argument)


def _find(filesystem: AbstractFileSystem, path: str, argument: str) -> list[Source]:
    """Sources under one argument; a name that exists is taken literally even if it looks like a glob."""
    suffixes = " ".join(sorted(VIDEO_SUFFIXES))
    if filesystem.isfile(path):
        paths = [path]
    elif filesystem.isdir(path):
        paths = _videos(filesystem.find(path), below=path)
        if not paths:
            raise SourceMissing(f"{argument}: a folder without a video; files with these suffixes count: {suffixes}")
    elif re.search(r"[*?\[]", argument):
        matches = [match for match in filesystem.glob(path) if filesystem.isfile(match)]
        paths = _videos(matches)
        if not paths:
            raise SourceMissing(
                f"{argument}: matches {len(matches)} files but no video; files with these suffixes count: {suffixes}"
            )
    else:
        raise SourceMissing(f"{argument}: no such file or folder; give a file, a folder, a glob or a URI")
    siblings: dict[str, list[str]] = {}
    return [_source(filesystem, path, siblings) for path in paths]


def _videos(paths: Sequence[str], below: str = "") -> list[str]:
    """Paths with a video suffix, none of them hidden (such as the `._film.mp4` that macOS leaves)."""
    visible = [path for path in paths if not re.search(r"(^|/)\.[^/]", path[len(below) :])]
    return [path for path in visible if PurePosixPath(path).suffix.lower() in VIDEO_SUFFIXES]


def _source(filesystem: AbstractFileSystem, path: str, siblings: dict[str, list[str]]) -> Source:
    folder = str(PurePosixPath(path).parent)
    if folder not in siblings:
        siblings[folder] = _names_in(filesystem, folder)
    local = "file" in filesystem.protocol
    sidecars = (f"{folder}/{name}" for name in _sidecars(PurePosixPath(path).name, siblings[folder]))
    return Source(
        uri=path if local else filesystem.unstrip_protocol(path),
        title=PurePosixPath(path).stem,
        sidecars=tuple(name if local else filesystem.unstrip_protocol(name) for name in sidecars),
    )


def _names_in(filesystem: AbstractFileSystem, folder: str) -> list[str]:
    """File names in a folder; none where the filesystem cannot list, as most web servers cannot."""
    try:
        return sorted(PurePosixPath(path).name for path in filesystem.ls(folder, detail=False))
    except (OSError, NotImplementedError):
        return []


def _sidecars(video: str, names: Sequence[str]) -> list[str]:
    """Subtitle files named after a video: its stem, perhaps tags such as `.en.forced`, a subtitle suffix.

    A file that fits two videos (`film`, `film.trailer`) belongs to the longer name.
    """
    stem = PurePosixPath(video).stem
    longer = [
        other
        for other in (PurePosixPath(name).stem for name in names if PurePosixPath(name).suffix.lower() in VIDEO_SUFFIXES)
        if other.startswith(f"{stem}.")
    ]
    return [
        name
        for name in names
        if PurePosixPath(name).suffix.lower() in SUBTITLE_SUFFIXES
        and name.startswith(f"{stem}.")
        and not any(name.startswith(f"{other}.") for other in longer)
    ]


def _filesystem(uri: str) -> tuple[AbstractFileSystem, str]:
    from fsspec.core import url_to_fs

    filesystem, path = url_to_fs(uri)
    return filesystem, path


def _download(uri: str, path: Path) -> None:
    filesystem, remote = _filesystem(uri)
    with filesystem.open(remote, "rb") as source, path.open("wb") as target:
        shutil.copyfileobj(source, target, CHUNK_BYTES)


def _attempt(uri: str, action: Callable[[], Result]) -> Result:
    """Do `action`, again if its failure may pass, and say what failed as a SourceError."""
    from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_exponential_jitter

    attempts = Retrying(
        retry=retry_if_exception(_may_pass),
        stop=stop_after_attempt(ATTEMPTS),
        wait=wait_exponential_jitter(initial=0.2, max=5),
        reraise=True,
    )
    try:
        return attempts(action)
    except FileNotFoundError as error:
        raise SourceMissing(f"{uri}: nothing is there; check the name") from error
    except IsADirectoryError as error:
        raise SourceMissing(f"{uri}: is a folder, not a file; name a video in it") from error
    except PermissionError as error:
        raise SourceForbidden(f"{uri}: reading is not permitted; check the rights or the credentials") from error
    except ImportError as error:
        raise SourceUnreachable(f"{uri}: this protocol needs a package that is missing: {_one_line(error)}") from error
    except Exception as error:
        # Every fsspec backend raises what its own client library raises; a SourceError passes as it is.
        if isinstance(error, SourceError):
            raise
        status = getattr(error, "status", None)
        kind = SourceForbidden if status in (401, 403) else SourceUnreachable
        raise kind(f"{uri}: cannot be read ({_one_line(error)}); check the address and try again later") from error


def _may_pass(error: BaseException) -> bool:
    """Whether trying again is worth it: network and server trouble is, what cannot change is not."""
    lasting = (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError, ImportError, ValueError)
    if isinstance(error, (SourceError, *lasting)):
        return False
    status = getattr(error, "status", None)
    return status is None or status >= 500 or status == 429


def _one_line(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())
