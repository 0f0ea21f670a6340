"""Imported text as an optional stage: added as `kinodex add` adds a model's captions or speech."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from index.library import Library
from index.rows import VideoRow
from jobs.annotate.captions import Caption, text_tower, text_vectors
from jobs.annotate.stage import StageRows
from jobs.text_import.types import TextLine, VideoText

Kind = Literal["captions", "speech"]


@dataclass(frozen=True, slots=True)
class ImportedText:
    """Texts of videos by id. `model` is their writer; with `replaces` its texts of before are deleted first.

    Captions get vectors in the library's own space, so that they are found by meaning.
    """

    name: Kind
    model: str
    texts: Mapping[str, VideoText]
    settings: Mapping[str, Any]
    replaces: bool = False
    device: str = "cpu"

    def prepare(self, library: Library) -> None:
        if self.name == "captions":
            text_tower(library)
        if self.replaces:
            library.additions.discard(self.name, self.model, *self.texts)

    def rows_of(self, library: Library, video: VideoRow) -> StageRows:
        text = self.texts[video.video_id]
        lines = _within(text.lines, video)
        left_out = len(text.lines) - len(lines)
        ends_s = f"{video.start_s:g} s to {video.end_s:g} s"
        outside = f"{left_out} of {len(text.lines)} lines lie outside it, {ends_s}" if left_out else None
        problem = "; ".join(filter(None, [text.problem, outside])) or None
        rows: Sequence[Any] = lines if self.name == "speech" else _captions(library, lines)
        return StageRows(rows, len(rows), problem)

    def write(self, library: Library, rows: Mapping[str, Any]) -> None:
        if self.name == "captions":
            library.additions.add_captions(rows, self.model)
        else:
            library.additions.add_speech(rows, self.model, "imported")


def _captions(library: Library, lines: Sequence[TextLine]) -> list[Caption]:
    vectors = text_vectors(library, [line.text for line in lines])
    return [
        Caption(number, line.start_s, line.end_s, line.text, line.confidence, vector)
        for number, (line, vector) in enumerate(zip(lines, vectors, strict=True))
    ]


def _within(lines: Sequence[TextLine], video: VideoRow) -> list[TextLine]:
    """Cut lines to the video, without those outside it."""
    return [
        replace(each, start_s=max(each.start_s, video.start_s), end_s=min(each.end_s, video.end_s))
        for each in lines
        if each.start_s < video.end_s and (video.start_s < each.end_s or video.start_s <= each.start_s)
    ]
