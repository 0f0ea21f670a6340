"""Speech by a local Whisper model: the one stage that needs the source again, for its sound."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from index.library import Library
from index.rows import VideoRow
from jobs.annotate.stage import StageRows, check_settings, hub_for
from jobs.video_source import source_of
from pipeline.sources.fetch import check_unchanged

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
        with source_of(library, video) as found:
            rows = list(recogniser.transcribe(sound_windows(Path(found.path), video.uri, found.is_playlist)))
            check_unchanged(found)
        return StageRows(rows, len(rows))

    def write(self, library: Library, rows: Mapping[str, Any]) -> None:
        library.additions.add_speech(rows, self.model)


@lru_cache(maxsize=1)
def _recogniser(model: str, device: str, language: str | None, batch: int) -> Recogniser:
    from pipeline.models.whisper import load_recogniser

    with hub_for(model):
        return load_recogniser(model, device, language, batch)
