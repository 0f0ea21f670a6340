"""Text on screen, read from the stored frames, or from the source at full size where print is small."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from kinodex.index.library import Library
from kinodex.index.rows import VideoRow
from kinodex.jobs.add.run import AddedRows, check_settings
from kinodex.jobs.library import BATCHES_AHEAD, picture_of, source_frames, stored_pictures
from kinodex.pipeline.models.detector import Box
from kinodex.pipeline.models.screen_text import CARRIED
from kinodex.pipeline.sample import prefetch

if TYPE_CHECKING:
    from PIL.Image import Image

    from kinodex.pipeline.models.screen_text import TextReader

FRAMES_AT_ONCE = 4
FULL_SIDE_PX = 1920
"""Longest side of a picture of `--full`: print that a larger one shows smaller than that is read by nobody."""
FULL_QUALITY = 95
"""The sampler makes an input for a model with each picture; here nothing reads it."""
MIN_CONFIDENCE = 0.75
"""Below it lie most of the letters that a reader finds in leaves and tiles (measured)."""


class NewLine(NamedTuple):
    """A row of text on screen; see kinodex.index.annotations.ScreenLineLike."""

    start_s: float
    end_s: float
    text: str
    confidence: float
    box: Box
    frames: int
    language: str | None


@dataclass(frozen=True, slots=True)
class ScreenText:
    """Settings of the addition; `languages` are codes such as "en", none for all that the model reads."""

    reader: str = CARRIED
    languages: tuple[str, ...] = ()
    full: bool = False
    min_confidence: float = MIN_CONFIDENCE
    device: str = "cpu"
    name: str = "screen_text"

    @property
    def model(self) -> str:
        """The reader's name, with its languages and the size of the pictures: other ones are another addition."""
        languages = f" for {self.language}" if self.languages else ""
        return f"{self.reader}{languages}{' at full size' if self.full else ''}"

    @property
    def language(self) -> str | None:
        return ", ".join(self.languages) or None

    @property
    def settings(self) -> Mapping[str, Any]:
        return {
            "reader": self.reader,
            "languages": list(self.languages),
            "full": self.full,
            "min_confidence": self.min_confidence,
        }

    def prepare(self, library: Library) -> None:
        check_settings(library, self, "min_confidence")
        _reader(self.reader, self.languages, self.min_confidence)

    def rows_of(self, library: Library, video: VideoRow) -> AddedRows:
        from kinodex.pipeline.models.screen_text import join_readings

        reader = _reader(self.reader, self.languages, self.min_confidence)
        pictures = _source_pictures(library, video) if self.full else _stored_pictures(library, video)
        times_s, readings = [], []
        with closing(pictures):
            for time_s, picture in pictures:
                times_s.append(time_s)
                readings.append(reader.read(picture))
        lines = join_readings(readings, times_s, video.end_s)
        rows = [NewLine(*line, self.language) for line in lines if line.end_s > line.start_s]
        return AddedRows(rows, len(rows))

    def write(self, library: Library, rows: Mapping[str, Any]) -> None:
        library.screen_text.add(rows, self.model)


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


@lru_cache(maxsize=1)
def _reader(name: str, languages: tuple[str, ...], min_confidence: float) -> TextReader:
    from kinodex.pipeline.models.screen_text import load_text_reader

    return load_text_reader(name, languages, min_confidence)
