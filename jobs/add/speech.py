"""Speech by a local Whisper model: the one addition that needs the source again, for its sound."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kinodex.index.clocks import player_s
from kinodex.index.library import Library
from kinodex.index.rows import VideoRow
from kinodex.jobs.add.run import AddedRows, check_settings, hub_for
from kinodex.jobs.errors import check_packages
from kinodex.jobs.library import source_of
from kinodex.pipeline.fetch import check_unchanged

if TYPE_CHECKING:
    from kinodex.pipeline.fetch import FetchedVideo
    from kinodex.pipeline.models.audio import Sound, VoiceDetector
    from kinodex.pipeline.models.speech import Recogniser, SpeechLine
    from kinodex.pipeline.models.voices import Voice, VoiceEncoder


@dataclass(frozen=True, slots=True)
class SpokenVideo:
    """Lines of a video, and the voices that the numbers in their `speaker` stand for."""

    lines: Sequence[SpeechLine]
    voices: Sequence[Voice]


@dataclass(frozen=True, slots=True)
class Speech:
    """Settings of the addition; `language` is a code such as "en", None to detect it, also where it changes."""

    model: str
    language: str | None = None
    batch: int = 4
    """Windows of half a minute that the model gets at once."""
    device: str = "auto"
    vad: bool = True
    """Only sound in which somebody speaks is given to the model."""
    speakers: bool = False
    """Lines say which of the library's voices spoke."""
    audio_track: str | None = None
    """Number of the sound track, from 1, or its language; None: the one that a player would choose."""
    name: str = "speech"

    @property
    def settings(self) -> Mapping[str, Any]:
        settings = {"model": self.model, "language": self.language, "vad": self.vad, "speakers": self.speakers}
        return settings if self.audio_track is None else {**settings, "audio_track": self.audio_track}

    def prepare(self, library: Library) -> None:
        check_settings(library, self, "language", "vad", "speakers", "audio_track")
        _recogniser(self.model, self.device, self.language, self.batch)
        if self.vad:
            _voice_detector()
        if self.speakers:
            check_packages("scipy")
            _voice_encoder(self.device)

    def rows_of(self, library: Library, video: VideoRow) -> AddedRows:
        recogniser = _recogniser(self.model, self.device, self.language, self.batch)
        with source_of(library, video) as found:
            spoken = recogniser.transcribe_windows(self._windows(found, video.uri))
            if self.speakers:
                rows = self._with_voices(spoken)
            else:
                rows = SpokenVideo([line for _, lines in spoken for line in lines], ())
            check_unchanged(found)
        rows = replace(rows, lines=[_as_shown(video, line) for line in rows.lines])
        return AddedRows(rows, len(rows.lines))

    def write(self, library: Library, rows: Mapping[str, SpokenVideo]) -> None:
        """Append the lines; voices are matched with those of the library here, wherever this runs, under a lease."""
        lines = {video_id: _with_speakers(library, spoken) for video_id, spoken in rows.items()}
        library.additions.add_speech(lines, self.model)

    def _windows(self, found: FetchedVideo, name: str) -> Iterator[Sound]:
        from kinodex.pipeline.models.audio import sound_pieces, sound_windows, voice_windows

        source = Path(found.path), name, found.is_playlist, self.audio_track
        return voice_windows(sound_pieces(*source), _voice_detector()) if self.vad else sound_windows(*source)

    def _with_voices(self, spoken: Iterable[tuple[Sound, list[SpeechLine]]]) -> SpokenVideo:
        """Tell the voices of a video apart, by the sound of its lines."""
        from kinodex.pipeline.models.voices import group_voices

        encoder, lines, vectors = _voice_encoder(self.device), [], []
        for window, some in spoken:
            lines += some
            vectors += [encoder.embed(window.between(line.start_s, line.end_s)) for line in some]
        voices, numbers = group_voices(vectors, [line.end_s - line.start_s for line in lines])
        named = zip(lines, numbers, strict=True)
        return SpokenVideo([replace(line, speaker=None if at is None else str(at)) for line, at in named], voices)


def _as_shown(video: VideoRow, line: SpeechLine) -> SpeechLine:
    """A line heard in the file, at the times that a player shows."""
    start_s, end_s = player_s(video, line.start_s), player_s(video, line.end_s)
    words = tuple(
        each._replace(start_s=player_s(video, each.start_s), end_s=player_s(video, each.end_s)) for each in line.words
    )
    return replace(line, start_s=start_s, end_s=end_s, words=words)


def _with_speakers(library: Library, spoken: SpokenVideo) -> list[SpeechLine]:
    """Replace the numbers of a video's own voices by the library's speakers."""
    if not spoken.voices:
        return list(spoken.lines)
    from kinodex.pipeline.models.voices import SAME_VOICE, VOICE_MODEL

    speakers = library.speakers.match(spoken.voices, VOICE_MODEL, SAME_VOICE)
    return [
        line if line.speaker is None else replace(line, speaker=speakers[int(line.speaker)]) for line in spoken.lines
    ]


@lru_cache(maxsize=1)
def _recogniser(model: str, device: str, language: str | None, batch: int) -> Recogniser:
    from kinodex.pipeline.models.speech import load_recogniser

    with hub_for(model):
        return load_recogniser(model, device, language, batch)


@lru_cache(maxsize=1)
def _voice_detector() -> VoiceDetector:
    from kinodex.pipeline.models.audio import load_voice_detector

    return load_voice_detector()


@lru_cache(maxsize=1)
def _voice_encoder(device: str) -> VoiceEncoder:
    from kinodex.pipeline.models.voices import load_voice_encoder

    return load_voice_encoder(device)
