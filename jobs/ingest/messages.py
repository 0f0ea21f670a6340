"""Messages between the coordinator of an ingest and its workers, the protocol of their executor, and idle workers."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

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
        """Number of workers, idle or not."""
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
        """Frames embedded and seconds of video read so far, by all workers, in finished tasks or not."""

    @property
    def readers(self) -> int:
        """Number of workers that read."""

    @property
    def capacity(self) -> int:
        """Number of workers that read, those that are starting included."""

    @property
    def embedders(self) -> int:
        """Number of copies of the model that embed."""


# Work of an ingest that waits for a worker: sources to identify, the largest first, and chunks to read.
#
# The largest first keeps the end of a run short (R. L. Graham, "Bounds on Multiprocessing Timing Anomalies", SIAM
# Journal on Applied Mathematics 17, 1969), and so do bundles that shrink as less is left (C. D. Polychronopoulos and
# D. J. Kuck, "Guided Self-Scheduling", IEEE Transactions on Computers 36, 1987). No operation takes longer with more
# sources or workers, but for those that follow a loss or a failure.

BUNDLE_BYTES = 1_000_000_000
ROUNDS = 2
"""Bundles that each worker would get if all were as large as the next one."""


class WorkQueue:
    """Tasks of one run that no worker has. `sizes` `[n]` are the bytes of the sources, negative where not known.

    A bundle holds at most `bundle` sources and no more bytes than a worker should fetch ahead.
    """

    def __init__(self, sources: Sequence[Source], sizes: ArrayLike, bundle: int) -> None:
        self._sources, self._bundle = sources, bundle
        known = np.asarray(sizes, np.int64)
        self._sizes = np.where(known < 0, 0, known)
        rank = np.where(known < 0, np.iinfo(np.int64).max, known)
        self._order = np.argsort(-rank, kind="stable").astype(np.int32)
        self._next = 0
        self._again: deque[Identify] = deque()
        self._reads: deque[Read] = deque()
        self._bound: dict[int, deque[Read]] = {}
        self.total = len(sources)
        self.bytes_total = int(known.sum()) if (known >= 0).all() else None
        self.reads = 0
        """Tasks that wait to be read."""

    def __bool__(self) -> bool:
        return bool(self.reads or self.has_sources)

    @property
    def has_sources(self) -> bool:
        """True if sources wait to be identified."""
        return bool(self._again) or self._next < self.total

    @property
    def bundles(self) -> int:
        """Number of tasks that wait to identify, if bundles stay as large as they may be."""
        return -(-(self.total - self._next) // self._bundle) + len(self._again)

    def next_identify(self, workers: int) -> Identify:
        """Take neighbouring sources in the order of size; those that are tried again come last."""
        if self._next == self.total:
            return self._again.popleft()
        most = max(1, min(self._bundle, (self.total - self._next) // (ROUNDS * workers)))
        bundle: list[Source] = []
        bundle_bytes = 0
        for position in self._order[self._next : self._next + most].tolist():
            bundle_bytes += int(self._sizes[position])
            if bundle and bundle_bytes > BUNDLE_BYTES:
                break
            bundle.append(self._sources[position])
        self._next += len(bundle)
        return Identify(tuple(bundle))

    def identify_again(self, source: Source) -> None:
        """Put a source back, to be identified by itself."""
        self._again.append(Identify((source,)))

    def add(self, task: Read) -> None:
        """Add chunks to read after all others."""
        self.reads += 1
        (self._reads if task.only is None else self._bound.setdefault(task.only, deque())).append(task)

    def add_first(self, tasks: Sequence[Read]) -> None:
        """Add chunks that any worker may read before all others."""
        self.reads += len(tasks)
        self._reads.extendleft(reversed(tasks))

    def bound_workers(self, idle: Collection[int]) -> list[int]:
        """List the workers among these that have chunks which they alone can read."""
        fewer, more = (self._bound, idle) if len(self._bound) < len(idle) else (idle, self._bound)
        return [worker for worker in fewer if worker in more]

    def next_bound(self, worker: int) -> Read:
        """Take chunks that only this worker can read."""
        tasks = self._bound[worker]
        task = tasks.popleft()
        if not tasks:
            del self._bound[worker]
        self.reads -= 1
        return task

    def next_read(self) -> Read | None:
        """Take chunks that any worker may read."""
        self.reads -= bool(self._reads)
        return self._reads.popleft() if self._reads else None

    def videos_to_read(self) -> int:
        """Count the chunks of all tasks that wait to be read."""
        return sum(len(task.chunks) for tasks in (self._reads, *self._bound.values()) for task in tasks)

    def release(self, worker: int) -> None:
        """Let any worker read what only a lost one could: it fetches the source again."""
        self._reads.extend(replace(task, only=None) for task in self._bound.pop(worker, ()))

    def drop_parts(self, video_id: str) -> None:
        """Take out the parts of a video, which is not to be read in parts any more."""
        kept = deque(task for task in self._reads if [each.video.video_id for each in task.chunks] != [video_id])
        self.reads -= len(self._reads) - len(kept)
        self._reads = kept

    def clear(self) -> None:
        """Take out everything."""
        self._next = self.total
        for tasks in (self._again, self._reads, self._bound):
            tasks.clear()
        self.reads = 0
