"""Workers of this process."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any

from kinodex.jobs.ingest import messages
from kinodex.jobs.ingest.worker import Embed, Worker
from kinodex.pipeline.fetch import FetchedVideo
from kinodex.pipeline.scratch import scratch_folder


@contextmanager
def local_executor(assignment: messages.Assignment, workers: int, embed: Embed, device: str) -> Iterator[LocalExecutor]:
    """Start workers; at the end they are stopped and their copies of remote sources deleted."""
    with scratch_folder() as folder:
        executor = LocalExecutor([Worker(assignment, folder, device) for _ in range(workers)], embed)
        try:
            yield executor
        finally:
            executor.close()


class LocalExecutor:
    """Executor of threads that share one model; each has a child process that decodes. See jobs/ingest/messages.py."""

    def __init__(self, workers: Sequence[Worker], embed: Embed) -> None:
        self._workers = workers
        self._embed = embed
        self._pool = ThreadPoolExecutor(2 * len(workers))
        self._running: dict[Future[Any], tuple[int, messages.Task]] = {}
        self._idle = messages.IdleWorkers()
        for worker in range(len(workers)):
            self._idle.join(worker)
        self.readers = self.capacity = len(workers)
        self.embedders = 1

    def idle(self, kind: type[messages.Task]) -> Collection[int]:
        return self._idle.of(kind)

    def start(self, worker: int, task: messages.Task) -> None:
        here = self._workers[worker]
        self._idle.start(worker, task)
        if isinstance(task, messages.Identify):
            future: Future[Any] = self._pool.submit(here.identify, task.sources)
        else:
            future = self._pool.submit(here.read, task.chunks, self._embed, task.may_split, task.sharers)
        self._running[future] = (worker, task)

    def wait(self, timeout_s: float) -> list[messages.FinishedTask]:
        done, _ = wait(self._running, timeout_s, FIRST_COMPLETED)
        finished = [messages.FinishedTask(*self._running.pop(future), future.result()) for future in done]
        for each in finished:
            self._idle.end(each.worker, each.task)
        return finished

    def forget(self, video: FetchedVideo) -> None:
        self._workers[0].forget(video)

    def counts(self) -> tuple[int, float]:
        return sum(worker.frames for worker in self._workers), sum(worker.video_s for worker in self._workers)

    def close(self) -> None:
        """Stop all work at once; the next run deletes what was not complete."""
        for worker in self._workers:
            worker.close()
        self._pool.shutdown(wait=True, cancel_futures=True)
