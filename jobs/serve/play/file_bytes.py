"""Bytes of a source, a piece at a time: read in threads, so that a slow disk or server holds up nobody else."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import ExitStack
from stat import S_ISREG
from typing import IO

from jobs.serve.play.ranges import Part

PIECE_BYTES = 1 << 18


def open_local(uri: str) -> IO[bytes]:
    """Open a regular file, through links as an ingest does; never waits for the other end of a pipe.

    Raises SourceMissing, or SourceForbidden; also for a pipe, a socket, a device or a folder.
    """
    from pipeline.errors import SourceMissing
    from pipeline.sources.fetch import attempt, local_file

    path = local_file(uri)
    file = attempt(uri, lambda: os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb"))
    if not S_ISREG(os.fstat(file.fileno()).st_mode):  # it was replaced between the look and the opening
        file.close()
        raise SourceMissing(f"{uri}: is no regular file; name a file")
    return file


async def read_part(uri: str, part: Part) -> AsyncGenerator[bytes]:
    """Yield the bytes of a part; ends early where the file has become shorter. The file is closed when this ends."""
    with ExitStack() as opened:
        file = await asyncio.to_thread(_open, uri, opened)
        await asyncio.to_thread(file.seek, part.first)
        left = part.length
        while left > 0:
            piece = await asyncio.to_thread(file.read, min(left, PIECE_BYTES))
            if not piece:
                return
            left -= len(piece)
            yield piece


def _open(uri: str, opened: ExitStack) -> IO[bytes]:
    from pipeline.sources.fetch import is_remote
    from pipeline.sources.parts import open_parts

    return opened.enter_context(open_parts(uri) if is_remote(uri) else open_local(uri))
