"""Filesystems that sources lie in: those of fsspec, and this machine's.

What fails for a moment is tried again, and errors are made one line.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from kinodex.pipeline.errors import SourceError, SourceForbidden, SourceMissing, SourceUnreachable
from kinodex.pipeline.origins import ORIGINS, check_stored, is_named_origin, keep_at, origin_of, plain_web, web_settings
from kinodex.pipeline.source import SILENCE_S

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

ATTEMPTS = 4
FIRST_WAIT_S, JITTER_S, LONGEST_WAIT_S = 0.2, 1.0, 5.0
"""Before the next try: doubled each time, with up to a jitter beside it."""
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
Result = TypeVar("Result")


class Interrupted(Exception):
    """Nobody wants the bytes any more. Raised only by a `Check`, and passed on as it is."""


Check = Callable[[], None]
"""Is called with every block that is read or fetched, and may raise Interrupted."""


def go_on() -> None:
    """Check nothing."""


def mount_of(uri: str) -> str | None:
    """Find the mount point of the file system that a local file lies in; None if it is elsewhere, or not there."""
    folder = Path(os.path.realpath(uri)).parent
    return None if is_remote(uri) or not folder.is_dir() else _mount_of(folder)


@lru_cache(4096)
def _mount_of(folder: Path) -> str:
    return next((str(each) for each in (folder, *folder.parents) if each.is_mount()), "/")


def is_remote(uri: str) -> bool:
    """Return True if a source's URI has to be fetched; anything else is a path of this machine."""
    return "://" in uri


def filesystem_of(uri: str, timeout_s: float = SILENCE_S, is_named: bool = False) -> tuple[AbstractFileSystem, str]:
    """Return the filesystem of a URI or local path, and the path in it; a web server may be silent for `timeout_s`.

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
    """Return True if a file system says that nothing is there.

    Of a web server that gives no answer fsspec says so too.
    """
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
