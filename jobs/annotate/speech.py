"""Speech by a local Whisper model: the one stage that needs the source again, for its sound."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from index.library import Library
from index.rows import VideoRow
from jobs.annotate.stage import StageRows, check_settings, hub_for
from pipeline.errors import SourceError, SourceMissing
from pipeline.sources.fetch import FetchedVideo, Source, check_unchanged, identify, scratch_folder

if TYPE_CHECKING:
    from pipeline.models.whisper import Recogniser


@dataclass(frozen=True, slots=True)
class Speech:
    """Settings of the stage; `language` is a code such as "en", None to detect it for each video."""

    model: str
    language: str | None = None
    batch: int = 4
    """Windows of half a minute that the model gets at once."""
    device: str = "auto"
    name: str = "speech"

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"model": self.model, "language": self.language}

    def prepare(self, library: Library) -> None:
        check_settings(library, self, "language")
        _recogniser(self.model, self.device, self.language, self.batch)

    def rows_of(self, library: Library, video: VideoRow) -> StageRows:
        from pipeline.models.audio_windows import sound_windows

        recogniser = _recogniser(self.model, self.device, self.language, self.batch)
        with _source_of(library, video) as found:
            rows = list(recogniser.transcribe(sound_windows(Path(found.path), video.uri, found.is_playlist)))
            check_unchanged(found)
        return StageRows(rows, len(rows))

    def write(self, library: Library, rows: Mapping[str, Any]) -> None:
        library.additions.add_speech(rows, self.model)


@contextmanager
def _source_of(library: Library, video: VideoRow) -> Iterator[FetchedVideo]:
    """Fetch the bytes of a video from any of its sources that still has them.

    Raises the SourceError of the first source if they are gone or changed everywhere.
    """
    with scratch_folder() as folder:
        try:
            found = _fetched(video.uri, video, folder)
        except SourceError as error:
            found = _fetched_elsewhere(library, video, folder, error)
        yield found


def _fetched(uri: str, video: VideoRow, folder: Path) -> FetchedVideo:
    found = identify(Source(uri, video.title), folder, allow_playlists=True)
    if found.video_id != video.video_id:
        raise SourceMissing(f"{uri}: holds another video by now; put the old one back, or ingest the new one")
    return found


def _fetched_elsewhere(library: Library, video: VideoRow, folder: Path, error: SourceError) -> FetchedVideo:
    """Fetch from another source that ingest found to be the same video."""
    same = [
        row.uri
        for row in library.ingest_log.sources().values()
        if row.video_id == video.video_id and row.uri != video.uri
    ]
    for uri in sorted(same):
        with suppress(SourceError):
            return _fetched(uri, video, folder)
    raise error


@lru_cache(maxsize=1)
def _recogniser(model: str, device: str, language: str | None, batch: int) -> Recogniser:
    from pipeline.models.whisper import load_recogniser

    with hub_for(model):
        return load_recogniser(model, device, language, batch)
