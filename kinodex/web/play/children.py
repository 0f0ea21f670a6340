"""Child processes that open media files: the facts that they find, and the streams that they write.

A file that crashes, hangs or fills a decoder ends its child and nothing else. A child lives as long as its client: it
is killed as soon as nobody wants its answer, and by the kernel if this process ends.
"""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from kinodex.jobs.child_processes import child_environment
from kinodex.server.responses import Refused

MEMORY_BYTES = 1_500_000_000
ANSWER_S = 30.0
"""Longest time to look into a file; one on a slow server needs many reads."""
SILENCE_S = 60.0
"""A stream ends that writes nothing for so long."""
UNREAD_S = 60.0
"""A stream ends that its client does not read for so long: it can go on later."""
PIECE_BYTES = 1 << 16
MODULE = "kinodex.pipeline.media.stream_child"


class CannotStream(Refused):
    """A file that cannot be looked into or streamed: it is broken, or took its child down."""

    status = 422


class TooManyStreams(Refused):
    """All children that may stream at once do."""

    status = 503
    retry_s = 4.0


class Children:
    """The children of one server: at most `most` that stream, the others for moments."""

    def __init__(self, most: int = 4, unread_s: float = UNREAD_S) -> None:
        self._most = most
        self._unread_s = unread_s
        self.streaming: set[Process] = set()

    async def answer(self, task: dict[str, Any]) -> dict[str, Any]:
        async with _child(task) as child:
            try:
                printed, errors = await asyncio.wait_for(_read_all(child), ANSWER_S)
            except TimeoutError:
                raise CannotStream(f"the file could not be looked into within {ANSWER_S:.0f} s") from None
        if child.returncode != 0:
            raise CannotStream(_reason(child, errors))
        reply: dict[str, Any] = json.loads(printed)
        return reply

    async def stream(self, task: dict[str, Any]) -> AsyncGenerator[bytes]:
        """Yield what a child streams. Before the first bytes raises CannotStream or TooManyStreams.

        It is killed when this generator is closed, at an exception too. A stream that breaks off raises CannotStream.
        """
        if len(self.streaming) >= self._most:
            raise TooManyStreams(f"{self._most} videos are being repacked or converted already; close one of them")
        async with _child(task) as child:
            self.streaming.add(child)
            try:
                assert child.stdout is not None
                while piece := await asyncio.wait_for(child.stdout.read(PIECE_BYTES), SILENCE_S):
                    unread = asyncio.get_running_loop().call_later(self._unread_s, _kill, child)
                    try:
                        yield piece
                    finally:
                        unread.cancel()
                assert child.stderr is not None
                errors = await child.stderr.read()
                if await child.wait() != 0:
                    raise CannotStream(_reason(child, errors))
            except TimeoutError:
                raise CannotStream("the file gave nothing more for too long") from None
            finally:
                self.streaming.discard(child)


@asynccontextmanager
async def _child(task: dict[str, Any]) -> AsyncIterator[Process]:
    """Start a child for one task; it is dead when the block ends."""
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-P", "-m", MODULE, str(MEMORY_BYTES), json.dumps(task)),
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        limit=PIECE_BYTES,
        env=child_environment() | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )
    try:
        yield child
    finally:
        _kill(child)
        await asyncio.shield(child.wait())


def _kill(child: Process) -> None:
    if child.returncode is None:
        with suppress(ProcessLookupError):  # it has just ended
            child.kill()


async def _read_all(child: Process) -> tuple[bytes, bytes]:
    assert child.stdout is not None and child.stderr is not None
    printed, errors = await asyncio.gather(child.stdout.read(), child.stderr.read())
    await child.wait()
    return printed, errors


def _reason(child: Process, errors: bytes) -> str:
    """Say why a child failed; a mistake in this program is raised as one, with its traceback."""
    from kinodex.pipeline.child_limits import OUT_OF_MEMORY
    from kinodex.pipeline.media.stream_child import BROKEN_FILE

    if child.returncode == BROKEN_FILE:
        message: str = json.loads(errors.splitlines()[-1])["message"]
        return message
    if child.returncode == OUT_OF_MEMORY:
        return f"decoding it takes more than {MEMORY_BYTES / 1e6:.0f} MB of memory"
    if child.returncode is not None and child.returncode < 0:
        return f"the process that reads it was ended by signal {-child.returncode}"
    raise RuntimeError(f"the process that reads a video failed: {errors.decode(errors='replace')}")
