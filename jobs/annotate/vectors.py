"""Vectors of all stored frames in another space, without going back to a video."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from index.library import Library
from index.rows import FrameVectors, VideoRow
from jobs.annotate.stage import StageRows
from jobs.carry_towers import carry_or_note, offer_carried, print_notes
from jobs.stored_frames import BATCHES_AHEAD, stored_pictures
from jobs.tokenizer import fetch_or_note
from pipeline.prefetch import prefetch

if TYPE_CHECKING:
    from index.embedding.embedders import ImageEmbedder


@dataclass(frozen=True, slots=True)
class Vectors:
    """Settings of the stage; `space` is what `load_space` takes."""

    space: str
    batch: int = 32
    """Frames that the model gets at once."""
    device: str = "auto"
    text_tower: bool = True
    """Keep the space's text tower with the library."""
    name: str = "vectors"

    @property
    def model(self) -> str:
        """The space's digest."""
        return _tower(self.space, self.device).fingerprint.digest

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"space": self.space}

    def prepare(self, library: Library) -> None:
        from index.embedding.space import fetch_tokenizer

        fingerprint = _tower(self.space, self.device).fingerprint
        library.additions.add_space(fingerprint)
        if self.text_tower:
            print_notes(carry_or_note(library, fingerprint, ["text"]))
        else:
            fetch_or_note(partial(fetch_tokenizer, self.space))

    def rows_of(self, library: Library, video: VideoRow) -> StageRows:
        tower = _tower_of(self.space, self.device, library.uri)
        held = library.vectors(video.video_id)
        prepared = (
            np.stack([tower.prepare(np.asarray(picture)) for _, picture in batch])
            for batch in stored_pictures(library, video, self.batch)
        )
        with closing(prefetch(prepared, BATCHES_AHEAD)) as batches:
            vectors = [tower.embed(batch) for batch in batches]
        made = np.concatenate(vectors) if vectors else np.empty((0, tower.dim), np.float16)
        return StageRows(FrameVectors(held.frame_no, held.time_s, made), len(made), arithmetic=tower.arithmetic)

    def write(self, library: Library, rows: Mapping[str, Any]) -> None:
        library.additions.add_vectors(rows, _tower(self.space, self.device).fingerprint)


@lru_cache(maxsize=1)
def _tower(space: str, device: str) -> ImageEmbedder:
    from index.embedding.load_tower import load_image_tower

    return load_image_tower(space, device)


@lru_cache(maxsize=1)
def _tower_of(space: str, device: str, uri: str) -> ImageEmbedder:
    """The same tower, which looks for its exported graph with the library at `uri`, too."""
    tower = _tower(space, device)
    offer_carried(tower, uri)
    return tower
