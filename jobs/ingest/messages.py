"""What is said between the one who hands out the work of an ingest and its workers; all of it can be sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pipeline.decoding.base import Span
from pipeline.sampling.sandbox import Limits
from pipeline.sampling.types import Chunk, ChunkSummary, SamplingSettings
from pipeline.sources.discover import Source
from pipeline.sources.fetch import FetchedVideo


@dataclass(frozen=True, slots=True)
class Assignment:
    """All that a worker has to know, once."""

    library_uri: str
    lease: tuple[str, str]
    """Name and token of the run's lease; a worker whose run lost it writes nothing more."""
    reading: SamplingSettings
    limits: Limits
    frames_a_commit: int


@dataclass(frozen=True, slots=True)
class SourceFailed:
    """A source that could not be fetched or identified."""

    source: Source
    stage: str
    error_class: str
    message: str


@dataclass(frozen=True, slots=True)
class ChunkRead:
    """A piece of which all frames and vectors are in the library.

    `times_s` `[n]`; `distances` `[n - 1]`, cosine distance of each frame to the one before; `ends` `[2, dim]`,
    the first and the last vector (`[0, dim]` where the piece has no frame).
    """

    chunk: Chunk
    summary: ChunkSummary
    times_s: NDArray[np.float64]
    distances: NDArray[np.float64]
    ends: NDArray[np.float16]


@dataclass(frozen=True, slots=True)
class ChunkFailed:
    """A piece that could not be read; nothing of it is in the library. `damaged`: it may go well read as a whole."""

    chunk: Chunk
    stage: str
    error_class: str
    message: str
    damaged: bool = False


@dataclass(frozen=True, slots=True)
class ChunkSplit:
    """A long video that is better read in parts; nothing of it is in the library yet."""

    chunk: Chunk
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class WorkDone:
    """What came of one `read`, and the seconds it took by stage."""

    results: tuple[ChunkRead | ChunkFailed | ChunkSplit, ...]
    seconds: dict[str, float]


@dataclass(frozen=True, slots=True)
class IdentifyDone:
    """What came of one `identify`, and the seconds it took."""

    results: tuple[FetchedVideo | SourceFailed, ...]
    seconds: dict[str, float]


@dataclass(frozen=True, slots=True)
class Identify:
    """Sources to fetch and identify."""

    sources: tuple[Source, ...]


@dataclass(frozen=True, slots=True)
class Read:
    """Pieces to read; by worker `only`, which alone has the local copies, if that is not None."""

    chunks: tuple[Chunk, ...]
    may_cut: bool
    only: int | None = None


Task = Identify | Read


@dataclass(frozen=True, slots=True)
class Finished:
    """A task that ended; `result` is None if its worker was lost and nothing is known of the task."""

    worker: int
    task: Task
    result: IdentifyDone | WorkDone | None


class Executor(Protocol):
    """Workers, here or on a cluster. A LibraryError of a worker is raised by `wait`."""

    def idle(self, kind: type[Task]) -> Sequence[int]:
        """Workers that could begin a task of this kind now."""

    def start(self, worker: int, task: Task) -> None:
        """Give an idle worker a task."""

    def wait(self, timeout_s: float) -> list[Finished]:
        """Tasks that ended since the last call, as soon as there is one."""

    def forget(self, identified: FetchedVideo) -> None:
        """Have local copies of a remote source deleted."""

    def seen(self) -> tuple[int, float]:
        """Frames embedded and seconds of video read so far, by all workers, finished or not."""

    @property
    def readers(self) -> int:
        """How many workers read."""

    @property
    def embedders(self) -> int:
        """How many copies of the model embed."""
