"""Arguments of the front door as its users may give them: videos, questions and paths."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from index.rows import VideoRow

if TYPE_CHECKING:
    from agent.core.question import Question

VideoName = str | VideoRow
"""A video's id, the first digits of one, its title or file name, or its row."""


def question_of(question: str | Question, options: Sequence[str]) -> Question:
    """The question of a text and its options, or the one given; raises UsageError for both."""
    from agent.core.question import Question

    if isinstance(options, str):
        raise usage_error(f"got the text {options!r} for options; give a list of 2 to 26 texts")
    if isinstance(question, str):
        return Question(question, tuple(options))
    if options:
        raise usage_error("got options beside a Question, which has its own; give one of them")
    return question


def names_of(videos: VideoName | Sequence[VideoName]) -> Sequence[str]:
    """The names of videos, one of which may be given without a list."""
    return [name_of(each) for each in ((videos,) if isinstance(videos, str | VideoRow) else videos)]


def name_of(video: VideoName) -> str:
    """The name of a video, or the id of its row."""
    return video if isinstance(video, str) else video.video_id


def library_place(uri: str | Path) -> str:
    """The place of a library, with the home folder of `~` as a shell writes it."""
    return str(Path(uri).expanduser()) if str(uri).startswith("~") else str(uri)


def path_of(path: str | Path | None) -> Path | None:
    """A path of a text, or None of None."""
    return None if path is None else Path(path)


def usage_error(message: str) -> Exception:
    """The error for arguments that make no sense."""
    from jobs.errors import UsageError

    return UsageError(message)
