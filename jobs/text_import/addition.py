"""Imported text as an addition to a library."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

from kinodex.index.library import Library
from kinodex.index.rows import VideoRow
from kinodex.jobs.add.captions import Caption, text_vectors
from kinodex.jobs.add.run import AddedRows
from kinodex.jobs.text_import.video_text import TextLine, VideoText

Kind = Literal["captions", "speech"]


@dataclass(frozen=True, slots=True)
class ImportedText:
    """Texts of videos by id. `model` is their writer; with `replaces` its texts of before are deleted first."""

    name: Kind
    model: str
    texts: Mapping[str, VideoText]
    settings: Mapping[str, Any]
    library: Library
    replaces: bool = False
    runs_on: str = "cpu"

    @contextmanager
    def open(self, library: Library) -> Iterator[Self]:
        """Load nothing: the texts are there."""
        yield self

    def share(self, processes: int) -> Self:
        return self

    def again(self) -> Collection[str]:
        return ()

    def prepare(self) -> None:
        if self.name == "captions" and self.library.fingerprint.has_vectors:
            _ = self.library.text_tower
        if self.replaces:
            self.library.additions.discard(self.name, self.model, *self.texts)

    def rows_of(self, video: VideoRow) -> AddedRows:
        text = self.texts[video.video_id]
        begins_s = min(video.start_s, 0.0) if self.name == "speech" else video.start_s  # pictures may come later
        lines = _within(text.lines, begins_s, video.end_s)
        left_out = len(text.lines) - len(lines)
        ends_s = f"{begins_s:g} s to {video.end_s:g} s"
        outside = f"{left_out} of {len(text.lines)} lines lie outside it, {ends_s}" if left_out else None
        problem = "; ".join(filter(None, [text.problem, outside])) or None
        rows: Sequence[Any] = lines if self.name == "speech" else _captions(self.library, lines)
        return AddedRows(rows, len(rows), problem)

    def write(self, rows: Mapping[str, Any]) -> None:
        if self.name == "captions":
            self.library.additions.add_captions(rows, self.model)
        else:
            self.library.additions.add_speech(rows, self.model, "imported")


def _captions(library: Library, lines: Sequence[TextLine]) -> list[Caption]:
    vectors = text_vectors(library, [line.text for line in lines])
    return [
        Caption(number, line.start_s, line.end_s, line.text, line.confidence, vector)
        for number, (line, vector) in enumerate(zip(lines, vectors, strict=True))
    ]


def _within(lines: Sequence[TextLine], start_s: float, end_s: float) -> list[TextLine]:
    """Cut lines to `[start_s, end_s)`, without those outside it."""
    return [
        replace(each, start_s=max(each.start_s, start_s), end_s=min(each.end_s, end_s))
        for each in lines
        if each.start_s < end_s and (start_s < each.end_s or start_s <= each.start_s)
    ]
