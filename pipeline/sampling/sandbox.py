"""Read videos in a child process, so that a decoder that crashes, hangs or eats memory takes only its video down."""

from __future__ import annotations

import os
import resource
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

from pipeline.errors import DecoderDied, DecoderHung, DecoderOutOfMemory
from pipeline.sampling.types import Chunk, PieceSummary, SampledFrame, SamplingSettings

if TYPE_CHECKING:
    from pipeline.decoding.spans import Span

Order = tuple[Literal["read", "cut"], Chunk, SamplingSettings]
Message = list[SampledFrame] | PieceSummary | tuple["Span", ...] | Exception
"""A list of pictures is followed by more messages; all else ends the answer to an order."""

REFERENCE = "pyav"
OUT_OF_MEMORY = 77
"""The child's exit status when it takes more memory than it may."""
SLOWEST_DISK_BYTES_S = 10_000_000
STUCK_S = 30
CLOSING_S = 2.0


class ReaderBroken(RuntimeError):
    """The child failed by a mistake in this program, not in a video: its traceback."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What reading one piece may take.

    Of time spent waiting for the child: `base_s` and `per_video_s` for each second of video; `silence_s` without a
    picture. Both grow by what the samples' distance and the file's size ask for. Of memory: `memory_bytes` resident.
    """

    base_s: float = 120.0
    per_video_s: float = 2.0
    silence_s: float = 120.0
    memory_bytes: int = 1_500_000_000


class Reader:
    """Reads one piece at a time in a child process, which is started when needed and lives on until `close`."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._child: _Child | None = None

    def cut(self, chunk: Chunk, reading: SamplingSettings) -> tuple[Span, ...]:
        """The spans that a video is cut into; none where it is short or cannot be cut.

        What takes the child down here comes to light when the video is read. Raises as `read` otherwise.
        """
        spans: tuple[Span, ...]
        try:
            (spans,) = self._answer(("cut", chunk, reading))
        except (DecoderDied, DecoderOutOfMemory):
            return ()
        return spans

    def read(self, chunk: Chunk, reading: SamplingSettings) -> Generator[list[SampledFrame] | PieceSummary, None, None]:
        """The pictures of a piece in order, at most `reading.batch` at a time, then its summary.

        After an error, and when the caller stops early, this object reads the next piece as if nothing had been.
        Where another decoder than PyAV took the child down, or the child died, which may be somebody else's doing or
        what earlier videos left in its memory, PyAV goes on in a new child, once.

        Raises:
            PipelineError, SpanDamaged: the same that reading in this process raises.
            DecoderHung, DecoderDied, DecoderOutOfMemory: the child was lost over it, with PyAV too.
            ReaderBroken: a mistake in this program.
        """
        given = -1
        try:
            with closing(self._answer(("read", chunk, reading))) as messages:
                for message in messages:
                    given = message[-1].number if isinstance(message, list) else given
                    yield message
            return
        except (DecoderHung, DecoderDied, DecoderOutOfMemory) as error:
            if reading.decoder == REFERENCE and not isinstance(error, DecoderDied):
                raise
            fell_back = None if reading.decoder == REFERENCE else f"{reading.decoder}: {type(error).__name__}"
        with closing(self._answer(("read", chunk, replace(reading, decoder=REFERENCE)))) as messages:
            for message in messages:
                if isinstance(message, PieceSummary):
                    yield replace(message, fell_back=fell_back)
                elif rest := [picture for picture in message if picture.number > given]:
                    yield rest

    def close(self) -> None:
        """End the child; a later call starts another."""
        child, self._child = self._child, None
        if child:
            child.close()

    def _answer(self, order: Order) -> Generator[Any, None, None]:
        """The child's messages up to the one that ends its answer."""
        _, chunk, reading = order
        name, patience = chunk.identified.source.uri, _Patience(self._limits, chunk, reading)
        if self._child and not self._child.is_fit():
            self.close()
        child = self._child = self._child or _Child(self._limits.memory_bytes)
        answered = False
        try:
            child.send(order)
            while not answered:
                message = patience.wait_for(child.connection)
                answered = not isinstance(message, list)
                if isinstance(message, Exception):
                    raise message
                yield message
        except (EOFError, ConnectionError) as error:
            raise child.why_it_ended(name) from error
        finally:
            if not answered:
                self._child = None
                child.kill()


class _Patience:
    """How long to wait for the child; the time that its parent does other things does not count."""

    def __init__(self, limits: Limits, chunk: Chunk, reading: SamplingSettings) -> None:
        self._name = chunk.identified.source.uri
        self._per_video_s = limits.per_video_s
        extra_s = limits.per_video_s / reading.fps + chunk.identified.size_bytes / SLOWEST_DISK_BYTES_S
        self._silence_s = limits.silence_s + extra_s
        self._left_s = limits.base_s + extra_s
        self._spent_s = self._seen_s = 0.0
        self._until_s: float | None = None

    def wait_for(self, connection: Connection) -> Message:
        """The child's next message; raises DecoderHung if it does not come in time."""
        began = time.monotonic()
        if not connection.poll(max(0.0, min(self._silence_s, self._left_s))):
            raise DecoderHung(f"{self._name}: {self._what_was_too_long()}; make the file anew, or allow more time")
        try:
            message: Message = connection.recv()
        except BlockingIOError as error:
            raise DecoderHung(f"{self._name}: its decoder stopped in the middle of a picture; try again") from error
        spent_s = time.monotonic() - began
        self._spent_s += spent_s
        self._left_s -= spent_s
        if isinstance(message, list):
            seen_s = message[-1].time_s - (message[0].time_s if self._until_s is None else self._until_s)
            self._left_s += seen_s * self._per_video_s
            self._seen_s += seen_s
            self._until_s = message[-1].time_s
        return message

    def _what_was_too_long(self) -> str:
        if self._silence_s <= self._left_s:
            return f"its decoder gave nothing for {self._silence_s:.0f} s"
        return f"{self._spent_s:.0f} s were not enough to decode more than {self._seen_s:.0f} s of it"


class _Child:
    """A process that runs `pipeline.sampling.sandbox_child`."""

    def __init__(self, memory_bytes: int) -> None:
        self._memory_bytes = memory_bytes
        ours, theirs = socket.socketpair()
        # A child that stops in the middle of a message must not keep its parent for ever.
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", STUCK_S, 0))
        self._words: IO[bytes] = tempfile.TemporaryFile("a+b")  # noqa: SIM115 (closed in _release)
        with theirs:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-P",
                    "-m",
                    "pipeline.sampling.sandbox_child",
                    str(theirs.fileno()),
                    str(memory_bytes),
                ],
                stdin=subprocess.PIPE,
                stdout=self._words,
                stderr=self._words,
                pass_fds=[theirs.fileno()],
                env=_environment(),
            )
        self.connection = Connection(ours.detach())

    def send(self, order: Order) -> None:
        self._words.truncate(0)
        self.connection.send(order)

    def is_fit(self) -> bool:
        """Whether it lives, and what earlier videos left in its memory leaves room for the next."""
        if self._process.poll() is not None:
            return False
        statm = Path(f"/proc/{self._process.pid}/statm").read_text()
        return int(statm.split()[1]) * resource.getpagesize() <= self._memory_bytes / 2

    def close(self) -> None:
        """End it as soon as it has nothing to do, which is at once between two pieces."""
        self.connection.close()
        try:
            self._process.wait(CLOSING_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._release()

    def kill(self) -> None:
        self._process.kill()
        self._release()

    def why_it_ended(self, name: str) -> Exception:
        """The error that stands for how it ended; it has closed its end of the connection."""
        try:
            status = self._process.wait(CLOSING_S)
        except subprocess.TimeoutExpired:
            return DecoderDied(f"{name}: the process that reads it went silent; try again")
        if status == OUT_OF_MEMORY:
            return DecoderOutOfMemory(
                f"{name}: decoding it takes more than {self._memory_bytes / 1e6:.0f} MB; allow more, or leave it out"
            )
        self._words.seek(0)
        words = self._words.read().decode(errors="replace").strip()
        if status >= 0:
            return ReaderBroken(f"reading {name}: {words}")
        last = f" ({words.splitlines()[-1][:200]})" if words else ""
        return DecoderDied(
            f"{name}: the process that reads it was ended by {signal.Signals(-status).name}{last}; "
            "make the file anew, or try again if something else ended it"
        )

    def _release(self) -> None:
        self._process.wait()
        self.connection.close()
        self._words.close()
        if self._process.stdin:
            self._process.stdin.close()


def _environment() -> dict[str, str]:
    """This process's own, with its import path, and one thread for each library that asks for a number."""
    path = os.pathsep.join([str(Path(__file__).parents[2]), *filter(None, sys.path)])
    return os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
