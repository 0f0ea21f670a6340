"""Places that fsspec reaches: opened by URI, asked again when a failure may pass, their errors made one line."""

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
    """Whether a source's URI has to be fetched; anything else is a path of this machine."""
    return "://" in uri


def filesystem_of(uri: str) -> tuple[AbstractFileSystem, str]:
    """The filesystem of a URI or local path, and the path in it."""
    from fsspec.core import url_to_fs

    if not is_remote(uri):
        uri = os.path.normpath(Path(uri).expanduser().absolute())
    filesystem, path = url_to_fs(uri)
    return filesystem, path


def protocols(filesystem: AbstractFileSystem) -> tuple[str, ...]:
    """The names that a filesystem goes by: "file", "s3", "https", ..."""
    return (filesystem.protocol,) if isinstance(filesystem.protocol, str) else tuple(filesystem.protocol)


def attempt(uri: str, action: Callable[[], Result]) -> Result:
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
