"""An optional stage on Ray: actors that each load the model once and take a few videos at a time.

They write the rows themselves; the driver lets readers see them. What a lost actor had is deleted and done again by
another one, each video by itself, three times in all; then it is a failure.
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
from jobs.annotate.run import Executor, Held, add_here
from jobs.annotate.stage import Added, SideBySide, Stage
from jobs.ray_cluster import actor_of, connected, reraise, total_resources

VIDEOS_A_BUNDLE = 4
TRIES = 3


@dataclass(frozen=True, slots=True)
class Bundle:
    """Videos for one actor, and how many actors were lost over them."""

    videos: tuple[VideoRow, ...]
    losses: int = 0


class AddWorker:
    """Adds a stage to videos; runs as an actor."""

    def __init__(self, uri: str, stage: Stage, held: Held) -> None:
        self._library = Library.open(uri)
        self._stage = stage
        self._held = held

    def add(self, videos: Sequence[VideoRow]) -> list[Added]:
        return [outcome for some in add_here(self._library, self._stage, videos, self._held) for outcome in some]


@contextmanager
def ray_executor(workers: int | None, address: str | None) -> Iterator[Executor]:
    """Give a crew of so many actors (None: one a GPU, else one a core) on the cluster at `address`, or started here."""
    with connected(address):
        yield partial(add_on_ray, workers)


def add_on_ray(
    workers: int | None, library: Library, stage: Stage, videos: Sequence[VideoRow], held: Held
) -> Generator[list[Added], None, None]:
    """See jobs.annotate.run.add_here; raises the PipelineError or KinodexError that ends an actor's work."""
    import ray

    actors = workers or int(_gpus(stage) or total_resources().get("CPU", 1)) or 1
    waiting = deque(_bundles(videos, actors))
    if isinstance(stage, SideBySide):
        stage = stage.share(min(actors, len(waiting)) or 1)
    idle = [_actor(library, stage, held) for _ in range(min(actors, len(waiting)))]
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
                actor = _actor(library, stage, held)
                waiting += _again(library, stage, bundle)
                outcomes = _given_up(bundle)
            idle.append(actor)
            yield outcomes
    finally:
        for actor in [*idle, *(actor for actor, _ in running.values())]:
            ray.kill(actor)


def _outcomes(reference: Any) -> list[Added] | None:
    """What an actor says of its videos; None if it was lost."""
    import ray

    try:
        outcomes: list[Added] = ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        reraise(error)
    except ray.exceptions.RayError:
        return None
    return outcomes


def _again(library: Library, stage: Stage, bundle: Bundle) -> list[Bundle]:
    """The videos of a lost actor each by itself, so that one that kills actors keeps no other from being done."""
    library.discard_addition(stage.name, stage.model, *(video.video_id for video in bundle.videos))
    if bundle.losses + 1 >= TRIES:
        return []
    return [Bundle((video,), bundle.losses + 1) for video in bundle.videos]


def _given_up(bundle: Bundle) -> list[Added]:
    if bundle.losses + 1 < TRIES:
        return []
    lost = f"{TRIES} workers were lost over it; look for their ends in Ray's logs (out of memory?), or lower --batch"
    return [Added(video.video_id, video.uri, video.title, 0, lost, "WorkerLost") for video in bundle.videos]


def _bundles(videos: Sequence[VideoRow], workers: int) -> list[Bundle]:
    """Bundles small enough that every actor gets two, if there are so many videos."""
    size = max(1, min(VIDEOS_A_BUNDLE, len(videos) // (2 * workers)))
    return [Bundle(tuple(videos[first : first + size])) for first in range(0, len(videos), size)]


def _actor(library: Library, stage: Stage, held: Held) -> Any:
    """A new actor, with a GPU where the cluster has any and the model may use one."""
    options: dict[str, Any] = {"num_gpus": 1} if _gpus(stage) else {"num_cpus": 1}
    return actor_of(AddWorker).options(max_restarts=0, max_task_retries=0, **options).remote(library.uri, stage, held)


def _gpus(stage: Stage) -> float:
    """GPUs of the cluster that the stage's model may use."""
    return 0.0 if stage.device == "cpu" else total_resources().get("GPU", 0.0)
