"""Models that embed, as Ray actors: one a GPU or a part of one, or, without GPUs, one for two CPUs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from jobs.ray_cluster import actor_of, total_resources

if TYPE_CHECKING:
    from index.embedding.embedders import ImageEmbedder
    from index.embedding.portable.tower_files import TowerKind
    from index.embedding.space import Fingerprint

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

    @cached_property
    def _space(self) -> ImageEmbedder:
        from index.embedding.load_tower import load_image_tower

        return load_image_tower(self._name, self._device)

    def fingerprint(self) -> Fingerprint:
        return self._space.fingerprint

    def arithmetic(self) -> str:
        return self._space.arithmetic

    def fetch_tokenizer(self) -> None:
        from index.embedding.space import fetch_tokenizer

        fetch_tokenizer(self._name)

    def carry_towers(self, uri: str, kinds: Sequence[TowerKind]) -> list[str]:
        from index.library import Library
        from jobs.carry_towers import carry_or_note, offer_carried

        notes = carry_or_note(Library.open(uri), self._space.fingerprint, kinds)
        offer_carried(self._space, uri)
        return notes

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
