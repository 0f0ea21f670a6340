"""Workers and embedders as Ray actors, on this machine or on a cluster; the one module that ingest meets Ray in.

A worker takes one CPU for its reader. Embedders take a GPU, or a part of one, each; where the cluster has none, they
share the CPUs, one for two. Pictures go from worker to embedder a batch at a time and nothing else travels, so the
object store holds no more than two batches a worker. A lost embedder is started anew by Ray and asked again; a lost
worker is replaced here, and its task reported as lost. Nodes that join later get workers and embedders too.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from index.embedding.space import Fingerprint
from jobs.errors import UsageError
from jobs.ingest.messages import Assignment, Finished, Identify, IdentifyDone, Task, WorkDone
from jobs.ingest.ray_embedders import Embedders, Sizes
from jobs.ingest.worker import Worker
from jobs.ray_cluster import actor_of, reraise, room
from jobs.scratch import scratch_folder
from pipeline.sampling.types import Chunk
from pipeline.sources.discover import Source
from pipeline.sources.fetch import FetchedVideo

LOOK_EVERY_S = 15.0
"""How often the cluster is asked whether it has grown."""

LEAVING_S = 5.0
STILLBORN = 20
"""Workers that may die in a row before they have said a word, until the cluster is held to be unfit."""
THREADS = 4
"""Calls that a worker takes at once: identify, read, and two short ones."""


class RayWorker:
    """A worker as an actor. Its embedder is named with each task, or it has a `space` of its own on its GPU."""

    def __init__(self, assignment: Assignment, space: str | None, device: str) -> None:
        self._start = assignment, space, device

    def hello(self) -> None:
        """Open the library and load what is needed; raises the KinodexError that it meets."""
        from index.embedding.space import load_space

        assignment, space, device = self._start
        self._space = load_space(space, device=device, towers="image") if space else None
        self._until_left = ExitStack()
        folder = self._until_left.enter_context(scratch_folder())
        self._worker = Worker(assignment, folder, self._space.device_type if self._space else "cpu")
        self._until_left.callback(self._worker.close)

    def identify(self, sources: Sequence[Source]) -> IdentifyDone:
        return self._worker.identify(sources)

    def read(self, chunks: Sequence[Chunk], embedder: Any, may_split: bool) -> WorkDone:
        import ray

        if self._space is not None:
            return self._worker.read(chunks, self._space.embed, may_split)

        def embed(batch: NDArray[np.uint8]) -> NDArray[np.float16]:
            vectors: NDArray[np.float16] = ray.get(embedder.embed.remote(batch))
            return vectors

        return self._worker.read(chunks, embed, may_split)

    def forget(self, identified: FetchedVideo) -> None:
        self._worker.forget(identified)

    def seen(self) -> tuple[int, float]:
        return self._worker.frames, self._worker.video_s

    def leave(self) -> None:
        """Stop the reader and delete what was fetched; what is asked for after this fails."""
        self._until_left.close()


@dataclass
class _Member:
    """One worker actor: ready once it has answered."""

    actor: Any
    hello: Any
    is_ready: bool = False
    asked: Any = None
    seen: tuple[int, float] = (0, 0.0)


@contextmanager
def ray_executor(space: str, device: str, sizes: Sizes, decoder: str) -> Iterator[RayCrew]:
    """Give a crew on the cluster that is connected; at the end its actors are stopped."""
    crew = RayCrew(space, device, sizes, decoder == "nvdec")
    try:
        yield crew
    finally:
        crew.close()


class RayCrew:
    """See jobs/ingest/messages.py. Its workers come with `begin`."""

    def __init__(self, space: str, device: str, sizes: Sizes, on_device: bool) -> None:
        self._sizes, self._space, self._device = sizes, space, device
        self._on_device = on_device
        # Workers that embed for themselves leave one embedder to say what the space is, and no GPU to it.
        self._embedders = (
            Embedders(space, "cpu", replace(sizes, embedders=1)) if on_device else Embedders(space, device, sizes)
        )
        self._embedders.grow()
        self._assignment: Assignment | None = None
        self._members: dict[int, _Member] = {}
        self._next = 0
        self._running: dict[Any, tuple[int, Task, int | None]] = {}
        self._looked = 0.0
        self._stillborn = 0
        self._gone: tuple[int, float] = (0, 0.0)

    def fingerprint(self) -> Fingerprint:
        """Of the space, as the first embedder has loaded it; raises the SpaceError that it met."""
        found: Fingerprint = self._from_first("fingerprint")
        return found

    def fetch_tokenizer(self) -> None:
        """Into the cache of the first embedder's machine; raises the SpaceError that it met."""
        self._from_first("fetch_tokenizer")

    def _from_first(self, method: str) -> Any:
        import ray

        try:
            return ray.get(getattr(self._embedders.actors[0], method).remote())
        except ray.exceptions.RayTaskError as error:
            reraise(error)

    @contextmanager
    def begin(self, assignment: Assignment) -> Iterator[RayCrew]:
        """Start the workers, and give this crew."""
        self._assignment = assignment
        self._grow()
        yield self

    @property
    def is_on_gpu(self) -> bool:
        return self._on_device or self._embedders.on_gpu

    @property
    def readers(self) -> int:
        return max(sum(member.is_ready for member in self._members.values()), 1)

    @property
    def embedders(self) -> int:
        return len(self._embedders.actors)

    def idle(self, kind: type[Task]) -> Sequence[int]:
        busy = {worker for worker, task, _ in self._running.values() if isinstance(task, kind)}
        return [worker for worker, member in self._members.items() if member.is_ready and worker not in busy]

    def start(self, worker: int, task: Task) -> None:
        actor = self._members[worker].actor
        if isinstance(task, Identify):
            self._running[actor.identify.remote(task.sources)] = (worker, task, None)
            return
        embedder = self._embedders.lightest()
        self._embedders.load[embedder] += 1
        reference = actor.read.remote(task.chunks, self._embedders.actors[embedder], task.may_split)
        self._running[reference] = (worker, task, embedder)

    def wait(self, timeout_s: float) -> list[Finished]:
        import ray

        if time.monotonic() - self._looked > LOOK_EVERY_S:
            self._embedders.grow()
            self._grow()
        hellos = {member.hello: worker for worker, member in self._members.items() if not member.is_ready}
        waited = [*self._running, *hellos]
        done, _ = ray.wait(waited, num_returns=1, timeout=timeout_s)
        more, _ = ray.wait(waited, num_returns=len(waited), timeout=0)
        finished = []
        for reference in {*done, *more}:
            if reference in hellos:
                self._greet(hellos[reference], reference)
            elif reference in self._running:
                finished += self._collect(reference)
        return finished

    def _greet(self, worker: int, reference: Any) -> None:
        import ray

        try:
            ray.get(reference)
            self._members[worker].is_ready = True
            self._stillborn = 0
        except ray.exceptions.RayTaskError as error:
            reraise(error)
        except ray.exceptions.RayActorError as error:
            del self._members[worker]
            self._stillborn += 1
            if self._stillborn > STILLBORN:
                said = " ".join(str(error).split())[:300]
                raise UsageError(
                    f"the cluster's workers die as they start: {said}; is this kinodex installed on every node?"
                ) from error
            self._grow()

    def _collect(self, reference: Any) -> list[Finished]:
        """The end of a task. With a lost worker everything that it had is lost."""
        import ray

        try:
            result = ray.get(reference)
        except ray.exceptions.RayTaskError as error:
            reraise(error)
        except ray.exceptions.RayError:
            worker = self._running[reference][0]
            lost = [other for other, (owner, _, _) in self._running.items() if owner == worker]
            self._dismiss(worker)
            return [Finished(worker, self._pop(other), None) for other in lost]
        worker = self._running[reference][0]
        return [Finished(worker, self._pop(reference), result)]

    def _pop(self, reference: Any) -> Task:
        _, task, embedder = self._running.pop(reference)
        if embedder is not None:
            self._embedders.load[embedder] -= 1
        return task

    def _dismiss(self, worker: int) -> None:
        import ray

        member = self._members.pop(worker)
        self._gone = (self._gone[0] + member.seen[0], self._gone[1] + member.seen[1])
        ray.kill(member.actor)  # it may only be out of reach; so it certainly writes nothing more
        self._grow()

    def _grow(self) -> None:
        self._looked = time.monotonic()
        needs = {"num_cpus": self._sizes.cpus_per_worker}
        most = int(room().get("CPU", 1.0) / self._sizes.cpus_per_worker)
        if self._on_device and self._device != "cpu":
            needs["num_gpus"] = self._sizes.gpus_per_embedder
            most = min(most, int(room().get("GPU", 0.0) / self._sizes.gpus_per_embedder))
        for _ in range(len(self._members), self._sizes.workers or max(most, 1)):
            actor = actor_of(RayWorker).options(
                max_restarts=0, max_task_retries=0, max_concurrency=THREADS, scheduling_strategy="SPREAD", **needs
            )
            made = actor.remote(self._assignment, self._space if self._on_device else None, self._device)
            self._members[self._next] = _Member(made, made.hello.remote())
            self._next += 1

    def forget(self, identified: FetchedVideo) -> None:
        for member in self._members.values():
            if member.is_ready:
                member.actor.forget.remote(identified)

    def seen(self) -> tuple[int, float]:
        """As the workers said when they were last asked; they are asked again without waiting for it."""
        import ray

        for member in self._members.values():
            if not member.is_ready:
                continue
            if member.asked is None:
                member.asked = member.actor.seen.remote()
            elif ray.wait([member.asked], timeout=0)[0]:
                asked, member.asked = member.asked, None
                try:
                    member.seen = ray.get(asked)
                except ray.exceptions.RayError:
                    continue  # the worker was lost; its task says so too, and is handled there
        counts = [self._gone, *(member.seen for member in self._members.values())]
        return sum(frames for frames, _ in counts), sum(video_s for _, video_s in counts)

    def close(self) -> None:
        """Stop all actors; they have a moment to delete what they fetched."""
        import ray

        leaving = [member.actor.leave.remote() for member in self._members.values() if member.is_ready]
        if leaving:
            ray.wait(leaving, num_returns=len(leaving), timeout=LEAVING_S)
        for actor in [*(member.actor for member in self._members.values()), *self._embedders.actors]:
            ray.kill(actor)
