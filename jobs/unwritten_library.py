"""A library to which nothing is written."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from kinodex.agent.videos.environment import Environment
from kinodex.agent.videos.library_videos import LibraryVideos
from kinodex.index.rows import NoteRow


@dataclass(frozen=True, slots=True)
class UnwrittenVideos:
    """Videos of a library, to which captions are added in memory alone. Everything else is the library's."""

    source: LibraryVideos
    added: list[NoteRow] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.source, name)

    def only(self, video_ids: Collection[str]) -> UnwrittenVideos:
        return replace(self, source=self.source.only(video_ids))

    def clips(self, video_id: str, model: str) -> list[NoteRow]:
        own = [row for row in self.added if (row.video_id, row.model) == (video_id, model)]
        return [*self.source.clips(video_id, model), *own]

    def add_clips(self, rows: Sequence[NoteRow]) -> None:
        self.added.extend(rows)


def without_writing(environment: Environment) -> Environment:
    """Return the same environment, which reads the library and keeps what is added to it in memory."""
    return replace(environment, source=cast(LibraryVideos, UnwrittenVideos(environment.source)))
