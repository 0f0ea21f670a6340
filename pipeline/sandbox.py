"""Sample videos in a child process, so that a decoder that crashes, hangs or takes all memory costs one video."""

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
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO, Any, Literal

from kinodex.pipeline.child_limits import OUT_OF_MEMORY
from kinodex.pipeline.cuts import Cut
from kinodex.pipeline.decoding.open import choose_decoder
from kinodex.pipeline.decoding.readers import Span
from kinodex.pipeline.errors import DecoderDied, DecoderHung, DecoderOutOfMemory
from kinodex.pipeline.live.beats import Beat, Resume
from kinodex.pipeline.sample import Chunk, ChunkSummary, SampledFrame, SamplingSettings

Request = (
    tuple[Literal["sample", "split"], Chunk, SamplingSettings]
    | tuple[Literal["subtitles"], Chunk, ChunkSummary]
    | tuple[Literal["cuts"], Chunk, Sequence[tuple[float, float]]]
    | tuple[Literal["live"], Chunk, SamplingSettings, Resume | None]
)
Message = list[SampledFrame] | list[Cut] | list[Beat] | ChunkSummary | tuple[Span, ...] | Exception
"""A list of frames, cuts or beats is followed by more messages; anything else ends the reply to a request."""

REFERENCE = "pyav"
LOST_OVER_SUBTITLES: dict[type[Exception], str] = {
    DecoderHung: "took longer than it may",
    DecoderDied: "ended the process that reads them",
    DecoderOutOfMemory: "took more memory than it may",
}
SLOWEST_DISK_BYTES_S = 10_000_000
STUCK_S = 30
CLOSING_S = 2.0


class ReaderBroken(RuntimeError):
    """A failure of the child by a mistake in this program, not in a video: its traceback."""


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """Limits of time and memory for sampling one chunk.

    Time spent waiting for the child: `base_s` and `per_video_s` for each second of video; `silence_s` without a frame.
    Both grow with the distance of the samples and the size of the file. Memory: `memory_bytes` resident.
    """

    base_s: float = 120.0
    per_video_s: float = 2.0
    silence_s: float = 120.0
    memory_bytes: int = 1_500_000_000


class SandboxSampler:
    """A `Sampler` in a child process, which is started when needed and lives on until `close`."""

    def __init__(self, limits: SandboxLimits) -> None:
        self._limits = limits
        self._child: _Child | None = None

    def split(self, chunk: Chunk, settings: SamplingSettings) -> tuple[Span, ...]:
        """Split a video; no spans where it is short, cannot be split, or takes the child down. Raises as `sample`."""
        spans: tuple[Span, ...]
        try:
            (spans,) = self._reply(("split", chunk, settings), settings)
        except (DecoderDied, DecoderOutOfMemory):
            return ()
        return spans

    def cuts(self, chunk: Chunk, windows_s: Sequence[tuple[float, float]], settings: SamplingSettings) -> list[Cut]:
        """Find the cuts in these times by `find_cuts`; a child that died is replaced once. Raises as `sample`."""
        return [cut for message in self._whole_reply(("cuts", chunk, windows_s), settings) for cut in message]

    def follow(self, chunk: Chunk, settings: SamplingSettings, resume: Resume | None) -> Generator[Beat, None, None]:
        """Yield the beats of a source that grows, until it ends; raises as `live_beats` and `sample`."""
        with closing(self._reply(("live", chunk, settings, resume), settings)) as messages:
            for message in messages:
                yield from message

    def sample(
        self, chunk: Chunk, settings: SamplingSettings
    ) -> Generator[list[SampledFrame] | ChunkSummary, None, None]:
        """Yield the frames of a chunk in order, at most `settings.batch` at a time, then its summary.

        After an error, and when the caller stops early, the next chunk is sampled as if nothing had happened. Where
        another decoder than PyAV took the child down, or the child died (another process may have killed it, or earlier
        videos damaged its memory), PyAV continues in a new child, once. Subtitles that take the child down are an error
        in the summary.

        Raises PipelineError, SpanDamaged: the same that sampling in this process raises; DecoderHung, DecoderDied,
        DecoderOutOfMemory: the child was lost over it, with PyAV too; ReaderBroken: a mistake in this program.
        """
        with closing(self._sample_frames(chunk, settings)) as messages:
            for message in messages:
                yield message if isinstance(message, list) else self._with_subtitles(message, chunk, settings)

    def _sample_frames(
        self, chunk: Chunk, settings: SamplingSettings
    ) -> Generator[list[SampledFrame] | ChunkSummary, None, None]:
        """Yield what `sample` does, but no subtitles in the summary."""
        last_number = -1
        decoder = choose_decoder(settings.decoder)
        try:
            with closing(self._reply(("sample", chunk, settings), settings)) as messages:
                for message in messages:
                    last_number = message[-1].number if isinstance(message, list) else last_number
                    yield message
            return
        except (DecoderHung, DecoderDied, DecoderOutOfMemory) as error:
            if decoder == REFERENCE and not isinstance(error, DecoderDied):
                raise
            fell_back = None if decoder == REFERENCE else f"{settings.decoder}: {type(error).__name__}"
        with closing(self._reply(("sample", chunk, replace(settings, decoder=REFERENCE)), settings)) as messages:
            for message in messages:
                if isinstance(message, ChunkSummary):
                    yield replace(message, fell_back=fell_back)
                elif rest := [frame for frame in message if frame.number > last_number]:
                    yield rest

    def _with_subtitles(self, summary: ChunkSummary, chunk: Chunk, settings: SamplingSettings) -> ChunkSummary:
        """Read the subtitles by `with_subtitles` in the child, twice if it died; losing it is one of their errors."""
        if chunk.index:
            return summary
        try:
            (complete,) = self._whole_reply(("subtitles", chunk, summary), settings)
        except (DecoderHung, DecoderDied, DecoderOutOfMemory) as error:
            message = f"{chunk.video.source.uri}: reading its subtitles {LOST_OVER_SUBTITLES[type(error)]}"
            return replace(summary, subtitle_errors=(f"{message}; repair them, or leave them out",))
        assert isinstance(complete, ChunkSummary)
        return complete

    def _whole_reply(self, request: Request, settings: SamplingSettings) -> list[Any]:
        """Collect the child's messages; one that died is replaced once."""
        try:
            return [*self._reply(request, settings)]
        except DecoderDied:
            return [*self._reply(request, settings)]

    def close(self) -> None:
        child, self._child = self._child, None
        if child:
            child.close()

    def _reply(self, request: Request, settings: SamplingSettings) -> Generator[Any, None, None]:
        """Yield the child's messages up to the one that ends its reply."""
        chunk = request[1]
        name, timer = chunk.video.source.uri, _Timer(self._limits, chunk, settings)
        if self._child and not self._child.is_reusable():
            self.close()
        child = self._child = self._child or _Child(self._limits.memory_bytes)
        complete = False
        try:
            child.send(request)
            while not complete:
                message = timer.wait_for(child.connection)
                complete = not isinstance(message, list)
                if isinstance(message, Exception):
                    raise message
                yield message
        except (EOFError, ConnectionError) as error:
            raise child.exit_error(name) from error
        finally:
            if not complete:
                self._child = None
                child.kill()


class _Timer:
    """Time left to wait for the child; time in which its parent does other things does not count."""

    def __init__(self, limits: SandboxLimits, chunk: Chunk, settings: SamplingSettings) -> None:
        self._name = chunk.video.source.uri
        self._per_video_s = limits.per_video_s
        extra_s = limits.per_video_s / settings.fps + chunk.video.size_bytes / SLOWEST_DISK_BYTES_S
        self._silence_s = limits.silence_s + extra_s
        self._left_s = limits.base_s + extra_s
        self._spent_s = self._sampled_s = 0.0
        self._until_s: float | None = None

    def wait_for(self, connection: Connection) -> Message:
        """Return the child's next message; raises DecoderHung if none comes in time, EOFError if the child ended."""
        began = time.monotonic()
        if not connection.poll(max(0.0, min(self._silence_s, self._left_s))):
            raise DecoderHung(f"{self._name}: {self._exceeded_limit()}; make the file again, or allow more time")
        try:
            message: Message = connection.recv()
        except BlockingIOError as error:
            raise DecoderHung(f"{self._name}: its decoder stopped in the middle of a picture; try again") from error
        except OSError as error:
            if error.errno is not None:
                raise
            raise EOFError("the child ended in the middle of a message") from error  # which has no number of its own
        spent_s = time.monotonic() - began
        self._spent_s += spent_s
        self._left_s -= spent_s
        if isinstance(message, list):
            sampled_s = message[-1].time_s - (message[0].time_s if self._until_s is None else self._until_s)
            self._left_s += sampled_s * self._per_video_s
            self._sampled_s += sampled_s
            self._until_s = message[-1].time_s
        return message

    def _exceeded_limit(self) -> str:
        if self._silence_s <= self._left_s:
            return f"its decoder returned nothing for {self._silence_s:.0f} s"
        return f"{self._spent_s:.0f} s were not enough to decode more than {self._sampled_s:.0f} s of it"


class _Child:
    """A process that runs `kinodex.pipeline.sandbox_child`."""

    def __init__(self, memory_bytes: int) -> None:
        self._memory_bytes = memory_bytes
        ours, theirs = socket.socketpair()
        # A child that stops in the middle of a message must not block its parent for ever.
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", STUCK_S, 0))
        self._output: IO[bytes] = tempfile.TemporaryFile("a+b")  # noqa: SIM115 (closed in _release)
        path = os.pathsep.join([str(Path(__file__).parents[2]), *filter(None, sys.path)])
        one_thread = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        with theirs:
            command = [sys.executable, "-P", "-m", "kinodex.pipeline.sandbox_child"]
            self._process = subprocess.Popen(
                [*command, str(theirs.fileno()), str(memory_bytes)],
                stdin=subprocess.PIPE,
                stdout=self._output,
                stderr=self._output,
                pass_fds=[theirs.fileno()],
                env=os.environ | {"PYTHONPATH": path, **one_thread},
            )
        self.connection = Connection(ours.detach())

    def send(self, request: Request) -> None:
        self._output.truncate(0)
        self.connection.send(request)

    def is_reusable(self) -> bool:
        """Check that it lives, and that the memory still held after earlier videos leaves room for the next."""
        if self._process.poll() is not None:
            return False
        statm = Path(f"/proc/{self._process.pid}/statm").read_text()
        return int(statm.split()[1]) * resource.getpagesize() <= self._memory_bytes / 2

    def close(self) -> None:
        self.connection.close()
        try:
            self._process.wait(CLOSING_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._release()

    def kill(self) -> None:
        self._process.kill()
        self._release()

    def exit_error(self, name: str) -> Exception:
        """Make the error that says how it ended; it has closed its end of the connection."""
        try:
            status = self._process.wait(CLOSING_S)
        except subprocess.TimeoutExpired:
            return DecoderDied(f"{name}: the process that reads it went silent; try again")
        if status == OUT_OF_MEMORY:
            return DecoderOutOfMemory(
                f"{name}: decoding it takes more than {self._memory_bytes / 1e6:.0f} MB; allow more, or leave it out"
            )
        self._output.seek(0)
        output = self._output.read().decode(errors="replace").strip()
        if status >= 0:
            return ReaderBroken(f"reading {name}: {output}")
        last = f" ({output.splitlines()[-1][:200]})" if output else ""
        return DecoderDied(
            f"{name}: the process that reads it was ended by {signal.Signals(-status).name}{last}; "
            "make the file again, or try again if something else ended it"
        )

    def _release(self) -> None:
        self._process.wait()
        self.connection.close()
        self._output.close()
        if self._process.stdin:
            self._process.stdin.close()
