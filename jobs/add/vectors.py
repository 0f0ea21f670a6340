"""Vectors of all stored frames in another space, without going back to a video."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from shlex import quote
from typing import TYPE_CHECKING, Any

import numpy as np

from kinodex.index.change_space import use_space
from kinodex.index.errors import LibraryBusy
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


log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FrameEmbedder(StageWork[Vectors]):
    """The stored frames of a library's videos as vectors of another space."""

    tower: ImageEmbedder

    @classmethod
    @contextmanager
    def open(cls, stage: Vectors, library: Library) -> Iterator[FrameEmbedder]:
        """Load the image tower of the space."""
        yield cls(stage, library, load_embedder(stage.space, stage.device))

    @classmethod
    def finish(cls, stage: Vectors, library: Library) -> None:
        """Make the space the library's own, if it has none and all is there."""
        take_first_space(library, stage.space)

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
        tower, (frame_no, time_s) = self.tower, self.library.frame_times(video.video_id)
        prepared = (
            np.stack([tower.prepare(np.asarray(picture)) for _, picture in batch])
            for batch in stored_pictures(self.library, video, self.stage.batch)
        )
        with closing(prefetch(prepared, BATCHES_AHEAD)) as batches:
            vectors = [tower.embed(batch) for batch in batches]
        made = np.concatenate(vectors) if vectors else np.empty((0, tower.dim), np.float16)
        return AddedRows(FrameVectors(frame_no, time_s, made), len(made), arithmetic=tower.arithmetic)

    def write(self, rows: Mapping[str, Any]) -> None:
        self.library.additions.add_vectors(rows, self.tower.fingerprint)


def take_first_space(library: Library, name: str) -> None:
    """Make a space the own one of a library that has none, once all its frames have vectors there; log what is left."""
    if library.fingerprint.has_vectors:
        return
    space, models = library.space(name), library.visible.models("vectors")
    lacking = [row for row in library.videos() if row.frames and space.digest not in models.get(row.video_id, ())]
    if lacking:
        rest = f"{len(lacking):,} videos have no vectors yet, {lacking[0].title} among them; run it again for all"
        log.warning("note: %s becomes the space of %s once all its videos are there: %s", name, library.uri, rest)
        return
    try:
        use_space(library, space.digest)
    except LibraryBusy as error:
        command = f"kinodex use-space {quote(library.uri)} {quote(name)}"
        log.warning("note: %s; then make %s the library's space: %s", error, name, command)
        return
    log.warning("note: the space of %s is %s now: its pictures can be searched", library.uri, name)
