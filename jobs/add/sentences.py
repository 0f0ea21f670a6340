"""Lines of text as vectors of a sentence model: what is said, shown and captioned, searched by meaning."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kinodex.index.library import Library
from kinodex.index.rows import VideoRow
from kinodex.jobs.add.run import AddedRows
from kinodex.jobs.add.stage import StageWork
from kinodex.jobs.add.stages import Sentences
from kinodex.jobs.towers.carried import carry_sentences, log_notes

if TYPE_CHECKING:
    from kinodex.index.spaces.sentence_model import SentenceModel


@dataclass(frozen=True, slots=True)
class SentenceEmbedder(StageWork[Sentences]):
    """The lines of a library's videos as vectors."""

    embedder: SentenceModel

    @classmethod
    @contextmanager
    def open(cls, stage: Sentences, library: Library) -> Iterator[SentenceEmbedder]:
        """Load the sentence model."""
        from kinodex.index.spaces.sentence_model import load_sentence_model

        yield cls(stage, library, load_sentence_model(stage.model, stage.device))

    @property
    def model(self) -> str:
        """The digest of the sentence model."""
        return self.embedder.space.digest

    def prepare(self) -> None:
        from kinodex.index.spaces.likeness import measure_likeness

        self.library.sentences.add_space(self.embedder.space, measure_likeness(self.embedder))
        log_notes(carry_sentences(self.library, self.embedder))

    def again(self) -> Collection[str]:
        """Ids of videos whose lines changed since they were embedded: their rows are replaced."""
        return self.library.sentences.outdated(self.embedder.space)

    def rows_of(self, video: VideoRow) -> AddedRows:
        lines = self.library.sentences.lines(video.video_id)
        if not lines:  # then nothing is written in place of what may be there
            self.library.additions.discard(self.name, self.model, video.video_id)
        vectors = self.embedder.embed_lines([line.text for line in lines])
        return AddedRows((lines, vectors), len(lines))

    def write(self, rows: Mapping[str, Any]) -> None:
        self.library.additions.discard(self.name, self.model, *rows)
        self.library.sentences.add(rows, self.embedder.space)
