"""Transcript lines that were added to a video: heard by a model, or imported; beside those of its subtitles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

from index.store.tables import Tables

AddedSource = Literal["asr", "imported"]


class SpeechLike(Protocol):
    """What is said in `[start_s, end_s)`."""

    @property
    def start_s(self) -> float: ...
    @property
    def end_s(self) -> float: ...
    @property
    def text(self) -> str: ...
    @property
    def language(self) -> str | None: ...
    @property
    def speaker(self) -> str | None: ...


def add_speech(tables: Tables, videos: Mapping[str, Sequence[SpeechLike]], model: str, source: AddedSource) -> None:
    """See Library.add_speech."""
    tables.append(
        "transcript",
        [
            {
                "video_id": video_id,
                "start_s": line.start_s,
                "end_s": line.end_s,
                "text": line.text,
                "source": source,
                "language": line.language,
                "speaker": line.speaker,
                "model": model,
            }
            for video_id, lines in videos.items()
            for line in lines
        ],
    )
