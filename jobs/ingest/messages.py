"""Messages between the coordinator of an ingest and its workers, the protocol of their executor, and idle workers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kinodex.pipeline.decoding.readers import Span
from kinodex.pipeline.fetch import FetchedVideo
from kinodex.pipeline.sample import Chunk, ChunkSummary, SamplingSettings
from kinodex.pipeline.sandbox import SandboxLimits
from kinodex.pipeline.source import Source


@dataclass(frozen=True, slots=True)
class Assignment:
    """Settings of a worker, sent once."""

    library_uri: str
    lease: tuple[str, str]
    """Name and token of the run's lease; a worker whose run lost it writes nothing more."""
    sampling: SamplingSettings
    limits: SandboxLimits
    frames_a_commit: int
    allow_playlists: bool = False
    fill_batches: bool = True
    """Fill a batch to its size by repeating its last picture: else a vector would depend on what else is in it."""


@dataclass(frozen=True, slots=True)
class SourceFailed:
    """A source that could not be fetched or identified."""

    source: Source
    stage: str
    error_class: str
    message: str


@dataclass(frozen=True, slots=True)
class ChunkRead:
    """Result of a chunk of which all frames and vectors are in the library.

    `distances` `[n - 1]` are cosine distances of each frame to the one before, `ends` `[2, dim]` the first and the last
    vector (`[0, dim]` where the chunk has no frame), `digests` those of its rows by table.
    """

    chunk: Chunk
    summary: ChunkSummary
    times_s: NDArray[np.float64]
    distances: NDArray[np.float64]
    ends: NDArray[np.float16]
    digests: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class ChunkFailed:
    """Failure of a chunk; nothing of it is in the library. `damaged`: its video may still be read as a whole."""

    chunk: Chunk
    stage: str
    error_class: str
    message: str
    damaged: bool = False


@dataclass(frozen=True, slots=True)
class ChunkSplit:
    """Spans of a long video to be read one by one; nothing of it is in the library yet."""

    chunk: Chunk
    spans: tuple[Span, ...]


ChunkResult = ChunkRead | ChunkFailed | ChunkSplit


@dataclass(frozen=True, slots=True)
class WorkDone:
    """Results of one `read`, and the seconds it took by stage."""

    results: tuple[ChunkResult, ...]
    seconds: dict[str, float]


@dataclass(frozen=True, slots=True)
class IdentifyDone:
    """Results of one `identify`, and the seconds it took."""

    results: tuple[FetchedVideo | SourceFailed, ...]
    seconds: dict[str, float]


@dataclass(frozen=True, slots=True)
class Identify:
    """Task: fetch and identify these sources."""

    sources: tuple[Source, ...]


@dataclass(frozen=True, slots=True)
class Read:
    """Task: read these chunks; on worker `only`, which alone has the local copies, if that is not None.

    `sharers` is the number of workers that could read parts of each video, if it is long enough to be split.
    """

    chunks: tuple[Chunk, ...]
    may_split: bool
    only: int | None = None
    sharers: int = 1


Task = Identify | Read


@dataclass(frozen=True, slots=True)
class FinishedTask:
    """A task that ended; `result` is None if its worker was lost and nothing is known of the task."""

    worker: int
    task: Task
    result: IdentifyDone | WorkDone | None


class IdleWorkers:
    """Workers that have no task of a kind. A worker may have one of each kind at the same time."""

    def __init__(self) -> None:
        self._members: set[int] = set()
        self._idle: dict[type[Task], dict[int, None]] = {Identify: {}, Read: {}}

    def __len__(self) -> int:
        """Return the number of workers, idle or not."""
        return len(self._members)

    def of(self, kind: type[Task]) -> Collection[int]:
        """Workers without a task of this kind, the longest idle first: a live view."""
        return self._idle[kind].keys()

    def join(self, worker: int) -> None:
        """Take in a worker that has no task."""
        self._members.add(worker)
        for idle in self._idle.values():
            idle[worker] = None

    def leave(self, worker: int) -> None:
        """Take out a worker, if it is there, whatever tasks it has."""
        self._members.discard(worker)
        for idle in self._idle.values():
            idle.pop(worker, None)

    def start(self, worker: int, task: Task) -> None:
        """Note that a worker begins a task. Raises KeyError if it is not idle."""
        del self._idle[type(task)][worker]

    def end(self, worker: int, task: Task) -> None:
        """Note that a worker's task ended; of one that left, nothing changes."""
        if worker in self._members:
            self._idle[type(task)][worker] = None


class Executor(Protocol):
    """Workers, here or on a cluster. A LibraryError of a worker is raised by `wait`."""

    def idle(self, kind: type[Task]) -> Collection[int]:
        """Workers that could begin a task of this kind now, the longest idle first: a live view, not a copy."""

    def start(self, worker: int, task: Task) -> None:
        """Start a task on an idle worker."""

    def wait(self, timeout_s: float) -> list[FinishedTask]:
        """Wait for tasks to end; returns those that ended since the last call."""

    def forget(self, video: FetchedVideo) -> None:
        """Delete local copies of a remote source."""

    def counts(self) -> tuple[int, float]:
        """Return the frames embedded and the seconds of video read by all workers so far."""

    @property
    def readers(self) -> int:
        """Number of workers that read."""

    @property
    def capacity(self) -> int:
        """Number of workers that read, those that are starting included."""

    @property
    def embedders(self) -> int:
        """Number of copies of the model that embed."""
