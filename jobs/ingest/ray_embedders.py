"""Models that embed, as Ray actors: one a GPU or a part of one, or, without GPUs, one for two CPUs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kinodex.index.spaces.fingerprint import Fingerprint
from kinodex.jobs.workers import actor_of, total_resources

if TYPE_CHECKING:
    from kinodex.index.spaces.embedders import ImageEmbedder
    from kinodex.index.spaces.towers import TowerKind

EMBED_RETRIES = 20


@dataclass(frozen=True, slots=True)
class Sizes:
    """Numbers of workers and embedders; None: as many as the cluster has room for, checked again while it runs."""

    workers: int | None = None
    embedders: int | None = None
    cpus_per_worker: float = 1.0
    gpus_per_embedder: float = 1.0


class Embedder:
    """A model on one device, as an actor. It loads the model at the first call: Ray would retry an actor that cannot be
    made again and again, while a call that fails is an error with its reason."""

    def __init__(self, space: str, device: str) -> None:
        self._name, self._device = space, device
        self._carried: Callable[[], list[str]] | None = None

    @cached_property
    def _space(self) -> ImageEmbedder:
        from kinodex.jobs.towers.embedder import load_embedder

        return load_embedder(self._name, self._device)

    def fingerprint(self) -> Fingerprint:
        return self._space.fingerprint

    def arithmetic(self) -> str:
        return self._space.arithmetic

    def fetch_tokenizer(self) -> None:
        from kinodex.index.spaces.space import fetch_tokenizer

        fetch_tokenizer(self._name)

    def begin_carrying(self, uri: str, kinds: Sequence[TowerKind]) -> None:
        from kinodex.jobs.towers.carried import begin_carrying

        self._carried = begin_carrying(uri, self._space.fingerprint, kinds)

    def carried(self, uri: str, kinds: Sequence[TowerKind]) -> list[str]:
        """Wait until the towers are carried, and note what was done; an actor that was made again begins again."""
        if self._carried is None:
            self.begin_carrying(uri, kinds)
        assert self._carried is not None
        return self._carried()

    def embed(self, batch: NDArray[np.uint8]) -> NDArray[np.float16]:
        return self._space.embed(batch)


@dataclass
class Embedders:
    """The embedders, and the number of tasks that use each."""

    space: str
    device: str
    sizes: Sizes
    actors: list[Any] = field(default_factory=list)
    load: list[int] = field(default_factory=list)
    on_gpu: bool = False

    def grow(self) -> None:
        """Start as many as there is room for now, never fewer than one."""
        found = total_resources()
        gpus, cpus = found.get("GPU", 0.0), found.get("CPU", 1.0)
        self.on_gpu = self.on_gpu or (gpus > 0 and self.device != "cpu")
        share = self.sizes.gpus_per_embedder
        most = math.floor(gpus / share) if self.on_gpu else math.ceil(cpus / 2)
        for _ in range(len(self.actors), max(self.sizes.embedders or most, 1)):
            # On CPUs they reserve none: they and the workers keep each other waiting, so the system shares best.
            options: dict[str, Any] = {"num_gpus": share} if self.on_gpu else {"num_cpus": 0}
            actor = actor_of(Embedder).options(
                max_restarts=-1, max_task_retries=EMBED_RETRIES, scheduling_strategy="SPREAD", **options
            )
            self.actors.append(actor.remote(self.space, self.device if self.on_gpu or self.device != "auto" else "cpu"))
            self.load.append(0)

    def lightest(self) -> int:
        return self.load.index(min(self.load))
