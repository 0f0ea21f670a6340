"""Workers and embedders as Ray actors, on this machine or on a cluster.

A worker takes one CPU for its reader. Embedders take a GPU, or a part of one, each; where the cluster has none, they
share the CPUs, one for two. Pictures go from worker to embedder a batch at a time and nothing else travels, so the
object store holds no more than two batches a worker. Ray restarts a lost embedder and retries its batch; a lost worker
is replaced here, and its task reported as lost. Nodes that join later get workers and embedders too.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinodex.jobs.errors import UsageError
from kinodex.jobs.ingest.messages import Assignment, FinishedTask, Identify, IdentifyDone, IdleWorkers, Task, WorkDone
from kinodex.jobs.ingest.ray_embedders import Embedders, Sizes
from kinodex.jobs.ingest.worker import Worker
from kinodex.jobs.workers import Actor, Crew, reraise, total_resources
from kinodex.pipeline.fetch import FetchedVideo
from kinodex.pipeline.sample import Chunk
from kinodex.pipeline.scratch import scratch_folder
from kinodex.pipeline.source import Source

GROW_EVERY_S = 15.0
"""Time between two checks for new nodes."""

CLOSE_S = 5.0
MOST_FAILED_STARTS = 20
"""Workers that may die in a row as they start, before the run ends with an error."""
THREADS = 4
"""Calls that a worker takes at once: identify, read, and two short ones."""


class RayWorker:
    """A worker as an actor. Each task names its embedder, or the worker has a `space` of its own on its GPU."""

    def __init__(self, assignment: Assignment, space: str | None, device: str) -> None:
        self._start = assignment, space, device

    def open(self) -> bool:
        """Open the library and load what is needed; raises the KinodexError that it meets."""
        from kinodex.jobs.towers.embedder import load_embedder

        assignment, space, device = self._start
        self._space = load_embedder(space, device) if space else None
        self._at_end = ExitStack()
        folder = self._at_end.enter_context(scratch_folder())
        self._worker = Worker(assignment, folder, self._space.device_type if self._space else "cpu")
        self._at_end.callback(self._worker.close)
        return True

    def identify(self, sources: Sequence[Source]) -> IdentifyDone:
        return self._worker.identify(sources)

    def read(self, chunks: Sequence[Chunk], embedder: Any, may_split: bool, sharers: int) -> WorkDone:
        import ray

        if self._space is not None:
            return self._worker.read(chunks, self._space.embed, may_split, sharers)

        def embed(batch: NDArray[np.uint8]) -> NDArray[np.float16]:
            vectors: NDArray[np.float16] = ray.get(embedder.embed.remote(batch))
            return vectors

        return self._worker.read(chunks, embed, may_split, sharers)

    def forget(self, video: FetchedVideo) -> None:
        self._worker.forget(video)

    def counts(self) -> tuple[int, float]:
        return self._worker.frames, self._worker.video_s

    def close(self) -> None:
        """Stop the sampler and delete what was fetched; calls after this fail."""
        self._at_end.close()


class _Reader(Actor):
    """A worker as an actor; ready once it has opened the library."""

    is_ready = False
    counts: tuple[int, float] = (0, 0.0)
    counting: Future[Any] | None = None
    """The latest call of `counts`, if it has not been answered."""


@contextmanager
def ray_executor(space: str, device: str, sizes: Sizes, decoder: str) -> Iterator[RayExecutor]:
    """Start embedders on the connected cluster; at the end all actors are stopped."""
    executor = RayExecutor(space, device, sizes, decoder == "nvdec")
    try:
        yield executor
    finally:
        executor.close()


class RayExecutor:
    """Executor of Ray actors; see jobs/ingest/messages.py. `start_workers` adds the workers."""

    def __init__(self, space: str, device: str, sizes: Sizes, on_device: bool) -> None:
        self._sizes, self._space, self._device = sizes, space, device
        self._on_device = on_device
        # Workers that embed for themselves leave one embedder to say what the space is, and no GPU to it.
        self._embedders = (
            Embedders(space, "cpu", replace(sizes, embedders=1)) if on_device else Embedders(space, device, sizes)
        )
        self._embedders.grow()
        self._crew = Crew(self._start_reader)
        self._assignment: Assignment | None = None
        self._running: dict[Future[Any], tuple[int, Task | None, int | None]] = {}
        """Worker, task (None: it is opening the library) and embedder of each call."""
        self._ready = IdleWorkers()
        self._checked_s = 0.0
        self._failed_starts = 0

    def ask_embedder(self, method: str, *arguments: Any) -> Any:
        """Call a method of the first embedder, on whose machine it runs; raises what it raises."""
        import ray

        try:
            return ray.get(getattr(self._embedders.actors[0], method).remote(*arguments))
        except ray.exceptions.RayTaskError as error:
            reraise(error)

    @contextmanager
    def start_workers(self, assignment: Assignment) -> Iterator[RayExecutor]:
        self._assignment = assignment
        self._grow()
        yield self

    @property
    def is_on_gpu(self) -> bool:
        return self._on_device or self._embedders.on_gpu

    @property
    def readers(self) -> int:
        return max(len(self._ready), 1)

    @property
    def capacity(self) -> int:
        return max(len(self._crew.there), 1)

    @property
    def embedders(self) -> int:
        return len(self._embedders.actors)

    def idle(self, kind: type[Task]) -> Collection[int]:
        return self._ready.of(kind)

    def start(self, worker: int, task: Task) -> None:
        reader, embedder = self._crew.started[worker], None
        self._ready.start(worker, task)
        if isinstance(task, Identify):
            call = reader.call("identify", task.sources)
        else:
            embedder = self._embedders.lightest()
            self._embedders.load[embedder] += 1
            on = self._embedders.actors[embedder]
            call = reader.call("read", task.chunks, on, task.may_split, task.sharers)
        self._running[call] = worker, task, embedder

    def wait(self, timeout_s: float) -> list[FinishedTask]:
        if time.monotonic() - self._checked_s > GROW_EVERY_S:
            self._embedders.grow()
            self._grow()
        done, _ = wait(self._running, timeout_s, FIRST_COMPLETED)
        return [finished for call in done for finished in self._take(call)]

    def _take(self, call: Future[Any]) -> list[FinishedTask]:
        """Take the end of a task, or of a worker's start. Each task of a lost worker ends by itself."""
        worker, task, embedder = self._running.pop(call)
        result = self._crew.started[worker].result(call)
        if embedder is not None:
            self._embedders.load[embedder] -= 1
        if task is not None:
            self._ready.end(worker, task)
        elif result is not None:
            self._crew.started[worker].is_ready = True
            self._ready.join(worker)
            self._failed_starts = 0
        else:
            self._failed_starts += 1
            if self._failed_starts > MOST_FAILED_STARTS:
                cause = call.exception()
                raise UsageError(
                    f"the cluster's workers die as they start: {' '.join(str(cause).split())[:300]}; is this kinodex "
                    "installed on every node?"
                ) from cause
        if result is None:
            self._ready.leave(worker)
            self._grow()
        return [] if task is None else [FinishedTask(worker, task, result)]

    def _grow(self) -> None:
        """Start as many workers as there is room for now, in the place of lost ones too."""
        self._checked_s = time.monotonic()
        most = int(total_resources().get("CPU", 1.0) / self._sizes.cpus_per_worker)
        if self._needs_gpu:
            most = min(most, int(total_resources().get("GPU", 0.0) / self._sizes.gpus_per_embedder))
        for worker in self._crew.grow(self._sizes.workers or max(most, 1)):
            self._running[self._crew.started[worker].call("open")] = worker, None, None

    @property
    def _needs_gpu(self) -> bool:
        return self._on_device and self._device != "cpu"

    def _start_reader(self) -> _Reader:
        needs = {"num_cpus": self._sizes.cpus_per_worker}
        if self._needs_gpu:
            needs["num_gpus"] = self._sizes.gpus_per_embedder
        space = self._space if self._on_device else None
        options = needs | {"max_concurrency": THREADS, "scheduling_strategy": "SPREAD"}
        return _Reader(RayWorker, self._assignment, space, self._device, **options)

    def forget(self, video: FetchedVideo) -> None:
        for each in self._readers_there():
            each.handle.forget.remote(video)

    def _readers_there(self) -> list[_Reader]:
        return [each for each in self._crew.there.values() if each.is_ready]

    def counts(self) -> tuple[int, float]:
        """Counts of the last replies of all workers, lost ones too; the next are requested without waiting for them."""
        import ray

        for each in self._readers_there():
            if each.counting is None:
                each.counting = each.handle.counts.remote().future()
            elif each.counting.done():
                with suppress(ray.exceptions.RayError):  # the worker was lost; its task says so too
                    each.counts = each.counting.result()
                each.counting = None
        counts = [each.counts for each in self._crew.started]
        return sum(frames for frames, _ in counts), sum(video_s for _, video_s in counts)

    def close(self) -> None:
        """Stop all actors; they get a moment to delete what they fetched."""
        import ray

        wait([each.call("close") for each in self._readers_there()], CLOSE_S)
        for reader in self._crew.there.values():
            reader.end()
        for actor in self._embedders.actors:
            ray.kill(actor)
