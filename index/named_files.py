"""Small files that a user names, read whole: a pipe may never end, and a device has no size, so neither is read."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import Any, BinaryIO

MOST_BYTES = 1_000_000_000


class NotTaken(OSError):
    """A file that is not read whole; the message is the reason. An OSError, as for all that cannot be read."""


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file for reading, without waiting for a writer of a pipe; raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    mode = os.fstat(descriptor).st_mode
    if S_ISREG(mode) or S_ISDIR(mode):  # of a folder `fdopen` says that it is one
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    raise NotTaken("it is no regular file, but a pipe, a socket or a device")


def read_bytes(path: Path, most_bytes: int = MOST_BYTES) -> bytes:
    """Read a regular file of at most so many bytes; raises OSError."""
    with open_regular(path) as file:
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise NotTaken(f"it is larger than {most_bytes / 1e6:,.0f} MB; name a smaller file")
    return content


def read_text(path: Path, encoding: str = "utf-8") -> str:
    """Read a regular file of text, with line ends as \\n; raises OSError and UnicodeDecodeError."""
    return read_bytes(path).decode(encoding).replace("\r\n", "\n").replace("\r", "\n")


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file; raises OSError and ValueError, also for one that is nested too deep to be walked through."""
    try:
        return tomllib.loads(read_text(path))
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error
