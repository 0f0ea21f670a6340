"""Filesystems of fsspec: opened by URI, tried again after a temporary failure, their errors made one line."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pipeline.errors import SourceError, SourceForbidden, SourceMissing, SourceUnreachable

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

ATTEMPTS = 4

Result = TypeVar("Result")


def is_remote(uri: str) -> bool:
    """True if a source's URI has to be fetched; anything else is a path of this machine."""
    return "://" in uri


def filesystem_of(uri: str) -> tuple[AbstractFileSystem, str]:
    """Open the filesystem of a URI or local path, and return it with the path in it."""
    from fsspec.core import url_to_fs

    if not is_remote(uri):
        uri = os.path.normpath(Path(uri).expanduser().absolute())
    filesystem, path = url_to_fs(uri)
    return filesystem, path


def protocols(filesystem: AbstractFileSystem) -> tuple[str, ...]:
    """List the names of a filesystem's protocol: "file", "s3", "https", ..."""
    return (filesystem.protocol,) if isinstance(filesystem.protocol, str) else tuple(filesystem.protocol)


def attempt(uri: str, action: Callable[[], Result]) -> Result:
    """Do one thing to a filesystem, retry after a failure that may be temporary, and raise failure as a SourceError."""
    from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_exponential_jitter

    attempts = Retrying(
        retry=retry_if_exception(_is_temporary),
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
    cause = " ".join(f"{type(error).__name__}: {error}".split())
    if isinstance(error, FileNotFoundError):
        return SourceMissing(f"{uri}: nothing is there; check the name")
    if isinstance(error, IsADirectoryError):
        return SourceMissing(f"{uri}: is a folder, not a file; name a video in it")
    if isinstance(error, PermissionError) or getattr(error, "status", None) in (401, 403):
        return SourceForbidden(f"{uri}: reading is not permitted; check rights and credentials")
    if isinstance(error, ImportError):
        return SourceUnreachable(f"{uri}: this protocol needs a package that is missing ({cause}); install it")
    if isinstance(error, ValueError):
        return SourceUnreachable(f"{uri}: not an address that fsspec understands ({cause}); check the protocol")
    return SourceUnreachable(f"{uri}: cannot be read ({cause}); check the address, or try again later")


def _is_temporary(error: BaseException) -> bool:
    """Check that a retry may help: after network and server trouble, not after a lasting failure."""
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
