"""Rows added to videos by Ray actors (`kinodex add --ray`), which load the model once and take a few videos at a time.

They write the rows themselves; the driver shows them to readers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from kinodex.agent.errors import ModelUnreachable
from kinodex.index.library import Library
from kinodex.index.rows import VideoRow
from kinodex.jobs.add.run import Addable, Addition, LeaseKey, Run, Take, VideoOutcome, add_in_process
from kinodex.jobs.batch import Batch, Limits
from kinodex.jobs.ray_cluster import connected
from kinodex.jobs.workers import LOST, TRIES, Actor, Crew, total_resources

VIDEOS_A_BUNDLE = 4


@dataclass(frozen=True, slots=True)
class Bundle:
    """Videos for one actor, and the times that nothing came of them."""

    videos: tuple[VideoRow, ...]
    losses: int = 0

    @property
    def ids(self) -> list[str]:
        return [each.video_id for each in self.videos]


class AddWorker:
    """Worker that adds rows to videos; runs as an actor, which keeps the models until it is ended."""

    def __init__(self, uri: str, stage: Addable, lease: LeaseKey) -> None:
        self._library, self._stage, self._lease = Library.open(uri), stage, lease
        self._opened = ExitStack()
        self._addition: Addition | None = None

    def add(self, videos: Sequence[VideoRow]) -> list[VideoOutcome]:
        if self._addition is None:
            self._addition = self._opened.enter_context(self._stage.open(self._library))
        outcomes: list[VideoOutcome] = []
        add_in_process(self._library, self._stage, self._addition, videos, self._lease, outcomes.extend)
        return outcomes


@contextmanager
def ray_executor(workers: int | None, address: str | None) -> Iterator[Run]:
    """Connect to the cluster at `address`, or start one, for this many actors (None: one a GPU, else one a core)."""
    with connected(address):
        yield partial(add_on_ray, workers)


def add_on_ray(
    workers: int | None,
    library: Library,
    stage: Addable,
    addition: Addition,
    videos: Sequence[VideoRow],
    lease: LeaseKey,
    take: Take,
) -> None:
    """Add rows as `add_in_process` does; raises the PipelineError or KinodexError that ends an actor's work.

    A bundle whose actor was lost, or to which an endpoint gave no reply at all, is deleted and retried video by video.
    """
    gpus = 0.0 if stage.runs_on == "cpu" else total_resources().get("GPU", 0.0)
    size = workers or int(gpus or total_resources().get("CPU", 1)) or 1
    most = max(1, min(VIDEOS_A_BUNDLE, len(videos) // (2 * size)))  # so that every actor gets two
    bundles = [Bundle(tuple(videos[first : first + most])) for first in range(0, len(videos), most)]
    size = min(size, len(bundles))
    share, needs = stage.share(size or 1), {"num_gpus": 1} if gpus else {"num_cpus": 1}
    crew = Crew(lambda: Actor(AddWorker, library.uri, share, lease, **needs))
    batch: Batch[Bundle] = Batch(Limits(size), "videos")
    unheard: list[VideoOutcome] = []

    def begin(bundle: Bundle) -> Future[tuple[Actor, Future[Any]]]:
        actor, ended = crew.lightest(size), Future[tuple[Actor, Future[Any]]]()
        actor.call("add", bundle.videos).add_done_callback(lambda call: ended.set_result((actor, call)))
        return ended

    def done(bundle: Bundle, ended: tuple[Actor, Future[Any]]) -> None:
        actor, call = ended
        try:
            outcomes: list[VideoOutcome] | None = actor.result(call)
        except ModelUnreachable as error:
            unheard.extend(set_apart(bundle, str(error), type(error).__name__))
            batch.unheard(bundle.videos[0].video_id, error)
            return
        if outcomes is None:
            take(set_apart(bundle, f"{LOST}, or lower --batch", "WorkerLost"))
            return
        batch.heard()
        take([*unheard, *outcomes])
        unheard.clear()

    def set_apart(bundle: Bundle, problem: str, error_class: str) -> list[VideoOutcome]:
        """Take out what was begun, and have each video tried again; after `TRIES` they have failed."""
        complete = library.visible.models(addition.name)  # by an earlier run: that stays
        begun = [id_ for id_ in bundle.ids if addition.model not in complete.get(id_, ())]
        library.additions.discard(addition.name, addition.model, *begun)
        if bundle.losses + 1 == TRIES:
            return [VideoOutcome.failed(video, problem, error_class) for video in bundle.videos]
        batch.waiting.extend(Bundle((video,), bundle.losses + 1) for video in bundle.videos)
        return []

    try:
        batch.run(bundles, begin, done)
    finally:
        for actor in crew.there.values():
            actor.end()
    take(unheard)
