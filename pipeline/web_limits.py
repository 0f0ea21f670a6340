"""Limits of what a web server sends for a source: the time of its answer, its pace, its encoding, the room on the disk.

A film may be as large as it likes, so its bytes have no limit but the disk; they come as they are, and not too slowly.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from fsspec.callbacks import Callback

from kinodex.pipeline.errors import SourceUnreachable

LEAST_BYTES_S = 4096
"""A server that sends fewer bytes a second, on the average, is given up as a silent one is."""
LEAST_FREE_BYTES = 500_000_000
LOOK_BYTES = 64 << 20
_RANGE = re.compile(r"bytes=(\d+)-(\d+)")


class Pace(Callback):  # type: ignore[misc] # fsspec has no types
    """A watch over the fetch of one file into a folder; it ends it by SourceUnreachable, or by what `check` raises."""

    def __init__(self, uri: str, folder: Path, patience_s: float, check: Callable[[], None]) -> None:
        super().__init__()
        self._uri, self._folder, self._patience_s, self._check = uri, folder, patience_s, check
        self._began_s, self._bytes, self._looked_at = time.monotonic(), 0, 0

    def relative_update(self, inc: int = 1) -> None:
        """Count bytes that came."""
        self._check()
        self._bytes += inc
        passed_s = time.monotonic() - self._began_s
        if passed_s > self._patience_s and self._bytes < LEAST_BYTES_S * passed_s:
            raise SourceUnreachable(
                f"{self._uri}: its server sent {self._bytes:,} bytes in {passed_s:.0f} s, which is too slow; try again "
                "later, or allow more with --source-timeout"
            )
        if self._bytes - self._looked_at >= LOOK_BYTES:
            self._looked_at = self._bytes
            if shutil.disk_usage(self._folder).free < LEAST_FREE_BYTES:
                raise SourceUnreachable(
                    f"{self._uri}: its server sent {self._bytes:,} bytes, and {self._folder} is full; make room"
                )


@lru_cache(64)
def in_time(timeout_s: float) -> Callable[..., Any]:
    """Return a middleware of aiohttp's client.

    It sees that the head of a reply comes in time, and that its body is no longer than was asked.

    aiohttp has a limit for each wait and none for all of them, and would unpack a few bytes to as many as fill a disk.
    """

    async def limited(request: Any, handler: Callable[[Any], Any]) -> Any:
        request.headers["Accept-Encoding"] = "identity"
        reply = await asyncio.wait_for(handler(request), timeout_s)
        encoding = reply.headers.get("Content-Encoding", "identity").strip().lower()
        if encoding not in ("", "identity"):
            reply.close()
            raise SourceUnreachable(f"{request.url}: is sent as {encoding[:40]}, which was not asked for; copy it here")
        asked = _RANGE.fullmatch(request.headers.get("Range", ""))
        if asked and reply.status == 206 and not _fits(reply.content_length, int(asked[1]), int(asked[2])):
            reply.close()
            raise SourceUnreachable(f"{request.url}: its server sends more than was asked for; copy the file here")
        return reply

    return limited


def _fits(length: int | None, first: int, last: int) -> bool:
    return length is not None and length <= last - first + 1
