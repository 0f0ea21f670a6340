"""A file elsewhere, read in parts as they are needed: it is never fetched whole."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from os import SEEK_END
from typing import IO

from kinodex.pipeline.errors import SourceUnreachable
from kinodex.pipeline.fetch import BLOCK_BYTES
from kinodex.pipeline.filesystems import attempt, filesystem_of

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
