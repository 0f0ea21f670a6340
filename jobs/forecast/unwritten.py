"""An environment of which nothing is written: captions that a rehearsal makes stay in memory."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from agent.environment import Environment
from agent.video_source import VideoSource
from index.rows import ClipRow


@dataclass(frozen=True, slots=True)
class UnwrittenVideos:
    """Videos of a library, to which captions are added in memory alone. Everything else is the library's."""

    source: VideoSource
    added: list[ClipRow] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.source, name)

    def only(self, video_ids: Collection[str]) -> UnwrittenVideos:
        """The videos of these ids alone, with the same captions in memory."""
        return replace(self, source=self.source.only(video_ids))

    def clips(self, video_id: str, model: str) -> list[ClipRow]:
        """Captions of a video's parts by a model: those of the library, and those in memory."""
        own = [row for row in self.added if (row.video_id, row.model) == (video_id, model)]
        return [*self.source.clips(video_id, model), *own]

    def add_clips(self, rows: Sequence[ClipRow]) -> None:
        """Keep captions in memory."""
        self.added.extend(rows)


def without_writing(environment: Environment, added: list[ClipRow] | None = None) -> Environment:
    """The same environment, which reads the library and keeps what is `added` to it in this list."""
    source = UnwrittenVideos(environment.source, [] if added is None else added)
    return replace(environment, source=cast(VideoSource, source))
