"""Small files that a user names, read whole: no device, which has no end, and no pipe that nobody writes into."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from stat import S_ISDIR, S_ISFIFO, S_ISREG
from typing import Any, BinaryIO

MOST_BYTES = 1_000_000_000
AS_IT_IS = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
"""Flags of which a system has one or the other: open no pipe by waiting, and change no line ends."""


class NotTaken(OSError):
    """A file that is not read whole; the message is the reason. An OSError, as for all that cannot be read."""


def open_named(path: Path) -> BinaryIO:
    """Open a file, or a pipe (as of a shell's `<(...)`), for reading without waiting for its writer; raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | AS_IT_IS)
    kind = os.fstat(descriptor).st_mode
    if S_ISREG(kind) or S_ISDIR(kind) or S_ISFIFO(kind):  # of a folder `fdopen` says that it is one
        if S_ISFIFO(kind):
            os.set_blocking(descriptor, True)  # without a writer a pipe that is open is at its end
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    raise NotTaken("it is no file, but a device or a socket")


def read_bytes(path: Path, most_bytes: int = MOST_BYTES) -> bytes:
    """Read a file of at most this many bytes; raises OSError."""
    with open_named(path) as file:
        content = file.read(most_bytes + 1)
        if not content and S_ISFIFO(os.fstat(file.fileno()).st_mode):
            raise NotTaken("nobody writes into this pipe")
    if len(content) > most_bytes:
        raise NotTaken(f"it is larger than {most_bytes / 1e6:,.0f} MB; name a smaller file")
    return content


def read_text(path: Path, encoding: str = "utf-8") -> str:
    """Read a file of text, with line ends as \\n; raises OSError and UnicodeDecodeError."""
    return read_bytes(path).decode(encoding).replace("\r\n", "\n").replace("\r", "\n")


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file; raises OSError and ValueError, also for one that is nested too deep to be walked through."""
    try:
        return tomllib.loads(read_text(path))
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error
