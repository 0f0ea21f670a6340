"""Who does the work of an ingest: workers that each take one task of a kind at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from jobs.ingest.messages import IdentifyDone, WorkDone
from pipeline.sampling.types import Chunk, FetchedVideo
from pipeline.sources.discover import Source


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
