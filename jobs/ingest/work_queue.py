"""Work of an ingest that waits for a worker: sources to identify, the largest first, and chunks to read.

The largest first keeps the end of a run short (R. L. Graham, "Bounds on Multiprocessing Timing Anomalies", SIAM
Journal on Applied Mathematics 17, 1969), and so do bundles that shrink as less is left (C. D. Polychronopoulos and
D. J. Kuck, "Guided Self-Scheduling", IEEE Transactions on Computers 36, 1987). No operation takes longer with more
sources or workers, but for those that follow a loss or a failure.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from kinodex.jobs.ingest.messages import Identify, Read
from kinodex.pipeline.source import Source

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
