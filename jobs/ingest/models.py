"""The model that embeds frames in an ingest, here or on a cluster."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial

from kinodex.index.errors import TowersDamaged
from kinodex.index.library import Library
from kinodex.index.spaces.fingerprint import Fingerprint
from kinodex.index.spaces.image_tower import ImageTower
from kinodex.index.spaces.model_names import absolute_name
from kinodex.jobs.errors import UsageError
from kinodex.jobs.ingest.config import IngestConfig
from kinodex.jobs.ingest.messages import Assignment, Executor
from kinodex.jobs.ingest.reports import Watch
from kinodex.jobs.library import fetch_or_note
from kinodex.jobs.towers.carried import begin_carrying
from kinodex.jobs.towers.embedder import load_embedder

MOST_LOCAL_WORKERS = 16


@dataclass(frozen=True, slots=True)
class LoadedModels:
    """Models that are loaded: the fingerprint of their space, the start of workers for them, and another watch."""

    fingerprint: Fingerprint
    on_gpu: bool
    start_workers: Callable[[Assignment], AbstractContextManager[Executor]]
    begin_carrying: Callable[[str], Callable[[], list[str]]]
    arithmetic: Callable[[], str]
    watch: Watch | None = None
    fill_batches: bool = True


def load_models(config: IngestConfig, library: Library | None) -> AbstractContextManager[LoadedModels]:
    return _load_on_ray(config) if config.ray else _load_here(config, library)


@contextmanager
def _load_here(config: IngestConfig, library: Library | None) -> Iterator[LoadedModels]:
    """Load the model in this process; it computes with a worker's share of the cores until the end."""
    from kinodex.index.spaces.space import Space, fetch_tokenizer
    from kinodex.jobs.ingest.local_workers import local_executor

    space = load_embedder(config.space, config.device, library)
    if not config.text_tower and isinstance(space, Space):  # else it came with the export
        fetch_or_note(partial(fetch_tokenizer, config.space))
    if config.decoder == "nvdec" and space.device_type == "cpu" != config.device:
        why = "this machine has no GPU" if space.fingerprint.has_vectors else "without a space nothing runs on a GPU"
        raise UsageError(f"got --decoder nvdec, and {why}; use --decoder auto")
    cores = len(os.sched_getaffinity(0))
    workers = config.workers or min(cores, MOST_LOCAL_WORKERS)

    def start_workers(assignment: Assignment) -> AbstractContextManager[Executor]:
        if isinstance(space, ImageTower):  # beside the start of the decoders
            threading.Thread(target=_warm, args=(space,), daemon=True).start()
        return local_executor(assignment, workers, space.embed, space.device_type)

    def carry(uri: str) -> Callable[[], list[str]]:
        return begin_carrying(uri, space.fingerprint, config.towers)

    with space.threads(max(cores // workers, 1)):  # every worker embeds for itself
        on_gpu, varies = space.device_type == "cuda", not isinstance(space, ImageTower)
        yield LoadedModels(
            space.fingerprint, on_gpu, start_workers, carry, lambda: space.arithmetic, fill_batches=varies
        )


def _warm(tower: ImageTower) -> None:
    with suppress(TowersDamaged):  # the first batch raises it
        tower.warm()


@contextmanager
def _load_on_ray(config: IngestConfig) -> Iterator[LoadedModels]:
    """Load the model in actors of a cluster."""
    from kinodex.jobs.ingest.metrics import ray_watch
    from kinodex.jobs.ingest.ray import ray_executor
    from kinodex.jobs.ingest.ray_embedders import Sizes
    from kinodex.jobs.ray_cluster import connected

    sizes = Sizes(config.workers, config.embedders, config.cpus_per_worker, config.gpus_per_embedder)
    name = absolute_name(config.space)
    with connected(config.ray_address), ray_executor(name, config.device, sizes, config.decoder) as executor:
        ask = executor.ask_embedder
        fingerprint: Fingerprint = ask("fingerprint")
        if not config.text_tower and fingerprint.has_vectors:
            fetch_or_note(partial(ask, "fetch_tokenizer"))

        def carry(uri: str) -> Callable[[], list[str]]:
            ask("begin_carrying", uri, config.towers)
            return partial(ask, "carried", uri, config.towers)

        arithmetic = partial(ask, "arithmetic")
        yield LoadedModels(fingerprint, executor.is_on_gpu, executor.start_workers, carry, arithmetic, ray_watch())
