"""Optional stage on Ray: actors that each load the model once and take a few videos at a time.

They write the rows themselves; the driver shows them to readers. What a lost actor wrote is deleted and its videos are
retried by another one, each by itself, three times in all; then they are failures.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from index.library import Library
from index.rows import VideoRow
from jobs.annotate.run import Executor, LeaseKey, add_in_process
from jobs.annotate.stage import ConcurrentStage, Stage, VideoOutcome
from jobs.ray_cluster import actor_of, connected, reraise, total_resources

VIDEOS_A_BUNDLE = 4
TRIES = 3


@dataclass(frozen=True, slots=True)
class Bundle:
    """Videos for one actor, and the number of actors that were lost over them."""

    videos: tuple[VideoRow, ...]
    losses: int = 0


class AddWorker:
    """Worker that adds a stage to videos; runs as an actor."""

    def __init__(self, uri: str, stage: Stage, lease: LeaseKey) -> None:
        self._library = Library.open(uri)
        self._stage = stage
        self._lease = lease

    def add(self, videos: Sequence[VideoRow]) -> list[VideoOutcome]:
        return [outcome for some in add_in_process(self._library, self._stage, videos, self._lease) for outcome in some]


@contextmanager
def ray_executor(workers: int | None, address: str | None) -> Iterator[Executor]:
    """Connect to the cluster at `address`, or start one, for so many actors (None: one a GPU, else one a core)."""
    with connected(address):
        yield partial(add_on_ray, workers)


def add_on_ray(
    workers: int | None, library: Library, stage: Stage, videos: Sequence[VideoRow], lease: LeaseKey
) -> Generator[list[VideoOutcome], None, None]:
    """Add a stage as `add_in_process` does; raises the PipelineError or KinodexError that ends an actor's work."""
    import ray

    actors = workers or int(_gpus(stage) or total_resources().get("CPU", 1)) or 1
    waiting = deque(_bundles(videos, actors))
    if isinstance(stage, ConcurrentStage):
        stage = stage.share(min(actors, len(waiting)) or 1)
    idle = [_actor(library, stage, lease) for _ in range(min(actors, len(waiting)))]
    running: dict[Any, tuple[Any, Bundle]] = {}
    try:
        while waiting or running:
            while waiting and idle:
                actor, bundle = idle.pop(), waiting.popleft()
                running[actor.add.remote(bundle.videos)] = actor, bundle
            done, _ = ray.wait(list(running), num_returns=1)
            actor, bundle = running.pop(done[0])
            outcomes = _outcomes(done[0])
            if outcomes is None:
                ray.kill(actor)  # it may only be out of reach; so it certainly writes nothing more
                actor = _actor(library, stage, lease)
                waiting += _retries(library, stage, bundle)
                outcomes = _final_failures(bundle)
            idle.append(actor)
            yield outcomes
    finally:
        for actor in [*idle, *(actor for actor, _ in running.values())]:
            ray.kill(actor)


def _outcomes(reference: Any) -> list[VideoOutcome] | None:
    """Outcomes of an actor's videos; None if it was lost."""
    import ray

    try:
        outcomes: list[VideoOutcome] = ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        reraise(error)
    except ray.exceptions.RayError:
        return None
    return outcomes


def _retries(library: Library, stage: Stage, bundle: Bundle) -> list[Bundle]:
    """Delete what a lost actor wrote and split its videos, so that one that kills actors stops no other."""
    complete = library.visible.models(stage.name)
    begun = [each.video_id for each in bundle.videos if stage.model not in complete.get(each.video_id, ())]
    library.additions.discard(stage.name, stage.model, *begun)  # what an earlier run completed stays
    if bundle.losses + 1 >= TRIES:
        return []
    return [Bundle((video,), bundle.losses + 1) for video in bundle.videos]


def _final_failures(bundle: Bundle) -> list[VideoOutcome]:
    if bundle.losses + 1 < TRIES:
        return []
    lost = f"{TRIES} workers were lost over it; look for their ends in Ray's logs (out of memory?), or lower --batch"
    return [VideoOutcome(video.video_id, video.uri, video.title, 0, lost, "WorkerLost") for video in bundle.videos]


def _bundles(videos: Sequence[VideoRow], workers: int) -> list[Bundle]:
    """Split videos into bundles small enough that every actor gets two, if there are so many videos."""
    size = max(1, min(VIDEOS_A_BUNDLE, len(videos) // (2 * workers)))
    return [Bundle(tuple(videos[first : first + size])) for first in range(0, len(videos), size)]


def _actor(library: Library, stage: Stage, lease: LeaseKey) -> Any:
    """Start an actor, with a GPU where the cluster has any and the model may use one."""
    options: dict[str, Any] = {"num_gpus": 1} if _gpus(stage) else {"num_cpus": 1}
    return actor_of(AddWorker).options(max_restarts=0, max_task_retries=0, **options).remote(library.uri, stage, lease)


def _gpus(stage: Stage) -> float:
    """GPUs of the cluster that the stage's model may use."""
    return 0.0 if stage.device == "cpu" else total_resources().get("GPU", 0.0)
