"""The child process that opens media files for a server: a file that crashes or hangs a decoder costs it alone.

    python -m kinodex.pipeline.media.stream_child MEMORY_BYTES TASK

TASK is JSON: {"task": "facts", "uri"}, whose reply is one line of JSON, or {"task": "stream", "uri", "way", "from_s",
"end_s"}, whose reply is the stream; an error of the file is one line of JSON, {"error", "message"}, at the standard
error output, and status 3. Its standard input is a pipe into which its parent writes nothing: when the pipe closes, the
parent has ended, or wants no more.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from io import RawIOBase
from typing import Any

from kinodex.pipeline.child_limits import end_with_parent, watch_memory
from kinodex.pipeline.errors import PipelineError

BROKEN_FILE = 3
"""Exit status of a child whose file cannot be read or streamed."""


class Pipe(RawIOBase):
    """Standard output as PyAV writes to it: every write is whole, however slowly it is read."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        """Write all of `data`; waits while the reader has enough."""
        view = memoryview(data)
        length = len(view)
        try:
            while view:
                view = view[os.write(self._fd, view) :]
        except BrokenPipeError:  # nobody reads any more
            os._exit(0)
        return length


def main() -> None:
    memory_bytes, task = int(sys.argv[1]), json.loads(sys.argv[2])
    end_with_parent()
    watch_memory(memory_bytes)
    try:
        reply = run_task(task, Pipe(sys.stdout.fileno()))
    except PipelineError as error:
        print(json.dumps({"error": type(error).__name__, "message": str(error)}), file=sys.stderr)
        raise SystemExit(BROKEN_FILE) from None
    if reply is not None:
        print(json.dumps(reply))


def run_task(task: dict[str, Any], out: RawIOBase) -> dict[str, Any] | None:
    from kinodex.pipeline.media.facts import read_facts
    from kinodex.pipeline.media.play_stream import write_stream
    from kinodex.pipeline.media.source import open_source

    match task:
        case {"task": "facts", "uri": uri}:
            with open_source(uri) as source:
                return asdict(read_facts(source, uri))
        case {"task": "stream", "uri": uri, "way": way, "from_s": from_s, "end_s": end_s}:
            write_stream(uri, way, from_s, end_s, out)
            return None
    raise ValueError(f"got the task {task!r}")


if __name__ == "__main__":
    main()
