"""The child process of a `SandboxSampler`: samples the chunks that it is sent, until its parent is gone.

    python -m kinodex.pipeline.sandbox_child SOCKET MEMORY_BYTES

Its standard input is a pipe into which its parent writes nothing: when the pipe closes, the parent has ended.
"""

from __future__ import annotations

import re
import resource
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import closing
from multiprocessing.connection import Connection
from pathlib import Path

from kinodex.pipeline.child_limits import end_with_parent, watch_memory
from kinodex.pipeline.cuts import find_cuts
from kinodex.pipeline.decoding.readers import SpanDamaged
from kinodex.pipeline.decoding.spans import split_video
from kinodex.pipeline.errors import DecoderOutOfMemory, PipelineError
from kinodex.pipeline.live.beats import live_beats
from kinodex.pipeline.sample import ChunkSummary, SampledFrame, sample_frames, with_subtitles
from kinodex.pipeline.sandbox import Message, Request

NO_ADDRESSES = re.compile("can't start new thread|failed to map segment|[Cc]annot allocate memory")
MAX_HOLD_S = 2.0
"""Frames wait this long for more, so that the parent sees that work goes on."""


def main() -> None:
    socket_fd, memory_bytes = map(int, sys.argv[1:])
    end_with_parent()
    watch_memory(memory_bytes)
    with Connection(socket_fd) as parent:
        while True:
            try:
                request: Request = parent.recv()
            except EOFError:
                return
            for message in _reply(request):
                parent.send(message)


def _reply(request: Request) -> Iterator[Message]:
    """Yield the reply to a request, or its error; a programming error ends the process with its traceback."""
    chunk = request[1]
    try:
        if request[0] == "subtitles":
            yield with_subtitles(request[2], chunk)
            return
        if request[0] == "cuts":
            path, name = Path(chunk.video.path), chunk.video.source.uri
            for cut in find_cuts(path, name, request[2], chunk.video.is_playlist):
                yield [cut]
            yield ()
            return
        if request[0] == "live":
            with closing(live_beats(chunk, request[2], request[3])) as beats:
                for beat in beats:
                    yield [beat]
            yield ()
            return
        task, _, settings = request
        if task == "split":
            path, name = Path(chunk.video.path), chunk.video.source.uri
            yield split_video(path, name, settings.fps, settings.cut_s, settings.sharers)
        else:
            with closing(sample_frames(chunk, settings)) as parts:
                yield from _batches(parts, settings.batch)
    except (PipelineError, SpanDamaged) as error:
        yield error
    except (MemoryError, ImportError, RuntimeError) as error:
        limit_bytes, _ = resource.getrlimit(resource.RLIMIT_AS)
        is_limited = limit_bytes != resource.RLIM_INFINITY
        # Under such a limit no library can be mapped, and no thread started.
        if not isinstance(error, MemoryError) and not (is_limited and NO_ADDRESSES.search(str(error))):
            raise
        limited = f"; its processes are limited to {limit_bytes / 1e6:.0f} MB of addresses (ulimit -v): allow more"
        yield DecoderOutOfMemory(
            f"{chunk.video.source.uri}: there is no memory left to decode it with{limited if is_limited else ''}"
        )


def _batches(
    parts: Generator[SampledFrame | ChunkSummary, None, None], size: int, max_hold_s: float = MAX_HOLD_S
) -> Iterator[list[SampledFrame] | ChunkSummary]:
    """Group frames into batches, smaller ones where frames come slowly."""
    waiting: list[SampledFrame] = []
    since = time.monotonic()
    for part in parts:
        if isinstance(part, SampledFrame):
            waiting.append(part)
            if len(waiting) < size and time.monotonic() - since < max_hold_s:
                continue
        if waiting:
            yield waiting
            waiting, since = [], time.monotonic()
        if isinstance(part, ChunkSummary):
            yield part


if __name__ == "__main__":
    main()
