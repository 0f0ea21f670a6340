"""Vectors of all stored frames in another space, without going back to a video."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from kinodex.index.library import Library
from kinodex.index.rows import FrameVectors, VideoRow
from kinodex.index.spaces.model_names import BUILTIN_SPACE
from kinodex.jobs.add.run import AddedRows
from kinodex.jobs.library import BATCHES_AHEAD, fetch_or_note, none_drawn, stored_pictures, undrawn_videos
from kinodex.jobs.towers import carry_or_note, carry_sentences, load_embedder, log_notes
from kinodex.pipeline.sample import prefetch

if TYPE_CHECKING:
    from kinodex.index.spaces.embedders import ImageEmbedder
    from kinodex.index.spaces.sentence_model import SentenceModel


@dataclass(frozen=True, slots=True)
class Vectors:
    """Settings of the addition; `space` is what `load_space` takes."""

    space: str
    batch: int = 32
    """Frames that the model gets at once."""
    device: str = "auto"
    text_tower: bool = True
    """Keep the space's text tower with the library."""
    anyway: bool = False
    """Films that kinodex did not draw may go into the space builtin."""
    name: str = "vectors"

    @property
    def model(self) -> str:
        """The space's digest."""
        return _tower(self.space, self.device).fingerprint.digest

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"space": self.space}

    def prepare(self, library: Library) -> None:
        from kinodex.index.spaces.space import Space, fetch_tokenizer

        tower = _tower(self.space, self.device)
        fingerprint = tower.fingerprint
        if fingerprint.name == BUILTIN_SPACE and fingerprint.digest != library.fingerprint.digest:
            others = undrawn_videos(library)
            if others and not self.anyway:
                raise none_drawn(row.title for row in others)
            library.writer.note_undrawn([row.video_id for row in others])
        library.additions.add_space(fingerprint)
        if self.text_tower:
            log_notes(carry_or_note(library, fingerprint, ["text"]))
        elif isinstance(tower, Space):
            fetch_or_note(partial(fetch_tokenizer, self.space))

    def rows_of(self, library: Library, video: VideoRow) -> AddedRows:
        tower = _tower(self.space, self.device)
        held = library.vectors(video.video_id)
        prepared = (
            np.stack([tower.prepare(np.asarray(picture)) for _, picture in batch])
            for batch in stored_pictures(library, video, self.batch)
        )
        with closing(prefetch(prepared, BATCHES_AHEAD)) as batches:
            vectors = [tower.embed(batch) for batch in batches]
        made = np.concatenate(vectors) if vectors else np.empty((0, tower.dim), np.float16)
        return AddedRows(FrameVectors(held.frame_no, held.time_s, made), len(made), arithmetic=tower.arithmetic)

    def write(self, library: Library, rows: Mapping[str, Any]) -> None:
        library.additions.add_vectors(rows, _tower(self.space, self.device).fingerprint)


@lru_cache(maxsize=1)
def _tower(space: str, device: str) -> ImageEmbedder:
    return load_embedder(space, device)


# Lines of text as vectors of a sentence model: what is said, shown and captioned, searched by meaning.


@dataclass(frozen=True, slots=True)
class Sentences:
    """Settings of the addition; `sentence_model` is a hub id or a folder."""

    sentence_model: str
    device: str = "auto"
    name: str = "sentences"

    @property
    def model(self) -> str:
        """The digest of the sentence model."""
        return _loaded(self.sentence_model, self.device).space.digest

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"model": self.sentence_model}

    def prepare(self, library: Library) -> None:
        from kinodex.index.spaces.likeness import measure_likeness

        model = _loaded(self.sentence_model, self.device)
        library.sentences.add_space(model.space, measure_likeness(model))
        log_notes(carry_sentences(library, model))

    def outdated_videos(self, library: Library) -> list[str]:
        """Ids of videos whose lines changed since they were embedded: their rows are replaced (`add(again=...)`)."""
        return library.sentences.outdated(_loaded(self.sentence_model, self.device).space)

    def rows_of(self, library: Library, video: VideoRow) -> AddedRows:
        lines = library.sentences.lines(video.video_id)
        if not lines:  # then nothing is written in place of what may be there
            library.additions.discard(self.name, self.model, video.video_id)
        vectors = _loaded(self.sentence_model, self.device).embed_lines([line.text for line in lines])
        return AddedRows((lines, vectors), len(lines))

    def write(self, library: Library, rows: Mapping[str, Any]) -> None:
        library.additions.discard(self.name, self.model, *rows)
        library.sentences.add(rows, _loaded(self.sentence_model, self.device).space)


@lru_cache(maxsize=1)
def _loaded(name: str, device: str) -> SentenceModel:
    from kinodex.index.spaces.sentence_model import load_sentence_model

    return load_sentence_model(name, device)
