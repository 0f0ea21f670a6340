"""Vectors of all stored frames in another space, without going back to a video."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from kinodex.index.library import Library
from kinodex.index.rows import FrameVectors, VideoRow
from kinodex.jobs.add.run import AddedRows
from kinodex.jobs.add.stage import StageWork
from kinodex.jobs.add.stages import Vectors
from kinodex.jobs.library import BATCHES_AHEAD, fetch_or_note, stored_pictures
from kinodex.jobs.towers.carried import carry_or_note, log_notes
from kinodex.jobs.towers.embedder import load_embedder
from kinodex.pipeline.prefetch import prefetch

if TYPE_CHECKING:
    from kinodex.index.spaces.embedders import ImageEmbedder


@dataclass(frozen=True, slots=True)
class FrameEmbedder(StageWork[Vectors]):
    """The stored frames of a library's videos as vectors of another space."""

    tower: ImageEmbedder

    @classmethod
    @contextmanager
    def open(cls, stage: Vectors, library: Library) -> Iterator[FrameEmbedder]:
        """Load the image tower of the space."""
        yield cls(stage, library, load_embedder(stage.space, stage.device))

    @property
    def model(self) -> str:
        """The space's digest."""
        return self.tower.fingerprint.digest

    def prepare(self) -> None:
        from kinodex.index.spaces.space import Space, fetch_tokenizer

        library, fingerprint = self.library, self.tower.fingerprint
        library.additions.add_space(fingerprint)
        if self.stage.text_tower:
            log_notes(carry_or_note(library, fingerprint, ["text"]))
        elif isinstance(self.tower, Space):
            fetch_or_note(partial(fetch_tokenizer, self.stage.space))

    def rows_of(self, video: VideoRow) -> AddedRows:
        tower, held = self.tower, self.library.vectors(video.video_id)
        prepared = (
            np.stack([tower.prepare(np.asarray(picture)) for _, picture in batch])
            for batch in stored_pictures(self.library, video, self.stage.batch)
        )
        with closing(prefetch(prepared, BATCHES_AHEAD)) as batches:
            vectors = [tower.embed(batch) for batch in batches]
        made = np.concatenate(vectors) if vectors else np.empty((0, tower.dim), np.float16)
        return AddedRows(FrameVectors(held.frame_no, held.time_s, made), len(made), arithmetic=tower.arithmetic)

    def write(self, rows: Mapping[str, Any]) -> None:
        self.library.additions.add_vectors(rows, self.tower.fingerprint)
