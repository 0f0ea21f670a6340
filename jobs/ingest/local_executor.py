"""Workers in this process, each a thread with a child process that decodes; they share one model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any

from jobs.ingest.messages import Assignment, Finished, Identify, Task
from jobs.ingest.worker import Embed, Worker
from pipeline.sources.fetch import FetchedVideo, scratch_folder


@contextmanager
def local_executor(assignment: Assignment, workers: int, embed: Embed, device: str) -> Iterator[LocalExecutor]:
    """Start workers; at the end they are stopped and their copies of remote sources deleted."""
    with scratch_folder() as folder:
        executor = LocalExecutor([Worker(assignment, folder, device) for _ in range(workers)], embed)
        try:
            yield executor
        finally:
            executor.close()


class LocalExecutor:
    """Executor of threads; see jobs/ingest/messages.py."""

    def __init__(self, workers: Sequence[Worker], embed: Embed) -> None:
        self._workers = workers
        self._embed = embed
        self._pool = ThreadPoolExecutor(2 * len(workers))
        self._running: dict[Future[Any], tuple[int, Task]] = {}
        self.readers = len(workers)
        self.embedders = 1

    def idle(self, kind: type[Task]) -> Sequence[int]:
        busy = {worker for worker, task in self._running.values() if isinstance(task, kind)}
        return [worker for worker in range(len(self._workers)) if worker not in busy]

    def start(self, worker: int, task: Task) -> None:
        here = self._workers[worker]
        if isinstance(task, Identify):
            future: Future[Any] = self._pool.submit(here.identify, task.sources)
        else:
            future = self._pool.submit(here.read, task.chunks, self._embed, task.may_split)
        self._running[future] = (worker, task)

    def wait(self, timeout_s: float) -> list[Finished]:
        done, _ = wait(self._running, timeout_s, FIRST_COMPLETED)
        return [Finished(*self._running.pop(future), future.result()) for future in done]

    def forget(self, video: FetchedVideo) -> None:
        self._workers[0].forget(video)

    def counts(self) -> tuple[int, float]:
        return sum(worker.frames for worker in self._workers), sum(worker.video_s for worker in self._workers)

    def close(self) -> None:
        """Stop all work at once; the next run deletes what was not complete."""
        for worker in self._workers:
            worker.close()
        self._pool.shutdown(wait=True, cancel_futures=True)
