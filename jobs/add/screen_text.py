"""Text on screen, read from the stored frames, or from the source at full size where print is small."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from kinodex.index.library import Library
from kinodex.index.rows import VideoRow
from kinodex.jobs.add.run import AddedRows
from kinodex.jobs.add.stage import StageWork
from kinodex.jobs.add.stages import ScreenText
from kinodex.jobs.library import BATCHES_AHEAD, picture_of, source_frames, stored_pictures
from kinodex.pipeline.models.boxes import Box
from kinodex.pipeline.prefetch import prefetch

if TYPE_CHECKING:
    from PIL.Image import Image

    from kinodex.pipeline.models.screen_text.reader import TextReader

FRAMES_AT_ONCE = 4
FULL_SIDE_PX = 1920
"""Longest side of a picture of `--full`: print that a larger one shows smaller than that is read by nobody."""
FULL_QUALITY = 95
"""The sampler makes an input for a model with each picture; here nothing reads it."""


class NewLine(NamedTuple):
    """A row of text on screen, as `kinodex.index.rows.ScreenTextRow` describes it."""

    start_s: float
    end_s: float
    text: str
    confidence: float
    box: Box
    frames: int
    language: str | None


@dataclass(frozen=True, slots=True)
class TextFinder(StageWork[ScreenText]):
    """Lines of text in the frames of a library's videos."""

    reader: TextReader

    @classmethod
    @contextmanager
    def open(cls, stage: ScreenText, library: Library) -> Iterator[TextFinder]:
        """Load the reader."""
        from kinodex.pipeline.models.screen_text.reader import load_text_reader

        yield cls(stage, library, load_text_reader(stage.model, stage.language, stage.min_confidence))

    def rows_of(self, video: VideoRow) -> AddedRows:
        from kinodex.pipeline.models.screen_text.lines import join_readings

        pictures = _source_pictures(self.library, video) if self.stage.full else _stored_pictures(self.library, video)
        times_s, readings = [], []
        with closing(pictures):
            for time_s, picture in pictures:
                times_s.append(time_s)
                readings.append(self.reader.read(picture))
        lines = join_readings(readings, times_s, video.end_s)
        rows = [NewLine(*line, self.stage.languages) for line in lines if line.end_s > line.start_s]
        return AddedRows(rows, len(rows))

    def write(self, rows: Mapping[str, Any]) -> None:
        self.library.lines.add("screen_text", rows, self.model)


def _stored_pictures(library: Library, video: VideoRow) -> Generator[tuple[float, Image], None, None]:
    """Yield the time and picture of every stored frame, in order; raises PictureError."""
    with closing(prefetch(stored_pictures(library, video, FRAMES_AT_ONCE), BATCHES_AHEAD)) as batches:
        for batch in batches:
            for frame, picture in batch:
                yield frame.time_s, picture


def _source_pictures(library: Library, video: VideoRow) -> Generator[tuple[float, Image], None, None]:
    """Yield the same frames, decoded again at full size in a process of their own; raises SourceError or VideoError."""
    with closing(source_frames(library, video, video.sample_fps, FULL_SIDE_PX, FULL_QUALITY, FRAMES_AT_ONCE)) as frames:
        for frame in frames:
            yield frame.time_s, picture_of(frame)
