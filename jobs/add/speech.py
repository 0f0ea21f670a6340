"""Speech by a local Whisper model: the one addition that needs the source again, for its sound."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from kinodex.index.clocks import player_s
from kinodex.index.library import Library
from kinodex.index.rows import VideoRow
from kinodex.jobs.add.run import AddedRows
from kinodex.jobs.add.stage import StageWork
from kinodex.jobs.add.stages import Speech
from kinodex.jobs.errors import check_packages
from kinodex.jobs.library import source_of
from kinodex.jobs.models import hub_for
from kinodex.pipeline.fetch import check_unchanged

if TYPE_CHECKING:
    from kinodex.pipeline.fetch import FetchedVideo
    from kinodex.pipeline.models.audio import Sound
    from kinodex.pipeline.models.speech.recogniser import Recogniser, SpeechLine
    from kinodex.pipeline.models.speech.windows import VoiceDetector
    from kinodex.pipeline.models.voices import Voice, VoiceEncoder


@dataclass(frozen=True, slots=True)
class SpokenVideo:
    """Lines of a video, and the voices that the numbers in their `speaker` stand for."""

    lines: Sequence[SpeechLine]
    voices: Sequence[Voice]


@dataclass(frozen=True, slots=True)
class SpeechHearer(StageWork[Speech]):
    """Lines of what is said in a library's videos."""

    recogniser: Recogniser
    detector: VoiceDetector | None
    """Without one all sound is given to the model, not only that in which somebody speaks."""
    encoder: VoiceEncoder | None
    """With one, lines say which of the library's voices spoke."""

    @classmethod
    @contextmanager
    def open(cls, stage: Speech, library: Library) -> Iterator[SpeechHearer]:
        """Load the models of speech and of voices."""
        from kinodex.pipeline.models.speech.recogniser import load_recogniser
        from kinodex.pipeline.models.speech.windows import load_voice_detector
        from kinodex.pipeline.models.voices import load_voice_encoder

        with hub_for(stage.model):
            recogniser = load_recogniser(stage.model, stage.device, stage.language, stage.batch)
        if stage.speakers:
            check_packages("scipy")
        voices = load_voice_encoder(stage.device) if stage.speakers else None
        yield cls(stage, library, recogniser, load_voice_detector() if stage.vad else None, voices)

    def rows_of(self, video: VideoRow) -> AddedRows:
        with source_of(self.library, video) as found:
            spoken = self.recogniser.transcribe_windows(self._windows(found, video.uri))
            if self.encoder is not None:
                rows = _with_voices(self.encoder, spoken)
            else:
                rows = SpokenVideo([line for _, lines in spoken for line in lines], ())
            check_unchanged(found)
        rows = replace(rows, lines=[_as_shown(video, line) for line in rows.lines])
        return AddedRows(rows, len(rows.lines))

    def write(self, rows: Mapping[str, SpokenVideo]) -> None:
        """Append the lines; voices are matched with those of the library here, wherever this runs, under a lease."""
        lines = {video_id: _with_speakers(self.library, spoken) for video_id, spoken in rows.items()}
        self.library.additions.add_speech(lines, self.model)

    def _windows(self, found: FetchedVideo, name: str) -> Iterator[Sound]:
        from kinodex.pipeline.models.audio import sound_pieces, sound_windows
        from kinodex.pipeline.models.speech.windows import voice_windows

        source = Path(found.path), name, found.is_playlist, self.stage.audio_track
        return voice_windows(sound_pieces(*source), self.detector) if self.detector else sound_windows(*source)


def _with_voices(encoder: VoiceEncoder, spoken: Iterable[tuple[Sound, list[SpeechLine]]]) -> SpokenVideo:
    """Tell the voices of a video apart, by the sound of its lines."""
    from kinodex.pipeline.models.voices import group_voices

    lines, vectors = [], []
    for window, some in spoken:
        lines += some
        vectors += [encoder.embed(window.between(line.start_s, line.end_s)) for line in some]
    voices, numbers = group_voices(vectors, [line.end_s - line.start_s for line in lines])
    named = zip(lines, numbers, strict=True)
    return SpokenVideo([replace(line, speaker=None if at is None else str(at)) for line, at in named], voices)


def _as_shown(video: VideoRow, line: SpeechLine) -> SpeechLine:
    """Return a line heard in the file, at the times that a player shows."""
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
