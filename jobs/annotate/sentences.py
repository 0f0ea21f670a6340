"""Lines of text as vectors of a sentence model: what is said, shown and captioned, searched by meaning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from index.library import Library
from index.rows import VideoRow
from jobs.annotate.stage import StageRows
from jobs.carry_towers import carry_sentences, print_notes

if TYPE_CHECKING:
    from index.embedding.sentences.sentence_model import SentenceModel


@dataclass(frozen=True, slots=True)
class Sentences:
    """Settings of the stage; `sentence_model` is a hub id or a folder."""

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
        from index.embedding.sentences.likeness import measure_likeness

        model = _loaded(self.sentence_model, self.device)
        library.sentences.add_space(model.space, measure_likeness(model))
        print_notes(carry_sentences(library, model))

    def outdated_videos(self, library: Library) -> list[str]:
        """Ids of videos whose lines changed since they were embedded: their rows are replaced (`add(again=...)`)."""
        return library.sentences.outdated(_loaded(self.sentence_model, self.device).space)

    def rows_of(self, library: Library, video: VideoRow) -> StageRows:
        lines = library.sentences.lines(video.video_id)
        if not lines:  # then nothing is written in place of what may be there
            library.additions.discard(self.name, self.model, video.video_id)
        vectors = _loaded(self.sentence_model, self.device).embed_lines([line.text for line in lines])
        return StageRows((lines, vectors), len(lines))

    def write(self, library: Library, rows: Mapping[str, Any]) -> None:
        library.additions.discard(self.name, self.model, *rows)
        library.sentences.add(rows, _loaded(self.sentence_model, self.device).space)


@lru_cache(maxsize=1)
def _loaded(name: str, device: str) -> SentenceModel:
    from index.embedding.sentences.sentence_model import load_sentence_model

    return load_sentence_model(name, device)
