"""Idle workers of an executor, by the kind of task that they could begin: kept up to date, so that nobody counts."""

from __future__ import annotations

from collections.abc import Collection

from jobs.ingest.messages import Identify, Read, Task


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
