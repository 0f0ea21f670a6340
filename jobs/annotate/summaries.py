"""Scenes and chapters with titles and summaries: by a local model, or by any OpenAI-compatible endpoint.

What is joined to scenes and chapters is found without a model (`pipeline.scenes`). A model then writes of each scene
from the captions, speech and text that the library holds of it, or from some frames where it holds none, and of each
chapter from its scenes.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from agent.errors import NoUsableReply
from index.library import Library
from index.rows import VideoRow
from jobs.annotate.endpoint import (
    SEGMENTS_AT_ONCE,
    ModelThread,
    check_key,
    each_video,
    role_of,
    rows_at,
    shared_batch,
    stored_settings,
)
from jobs.annotate.scenes.contents import Write, stage_rows, write_contents
from jobs.annotate.scenes.film import read_film
from jobs.annotate.scenes.writers import endpoint_writer, local_writer, open_writer
from jobs.annotate.stage import RowsOf, StageRows, check_settings

if TYPE_CHECKING:
    from agent.models.endpoint import Send
    from agent.models.role_config import Role

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Summaries:
    """Settings of the stage. With `base_url` the model is one that an OpenAI-compatible endpoint serves."""

    model: str
    base_url: str | None = None
    frames_a_scene: int = 4
    """Frames by which a scene is shown of which nothing is known in words."""
    batch: int = SEGMENTS_AT_ONCE
    """Parts that a local model writes at once, or requests to an endpoint at once, of several videos together."""
    max_new_tokens: int = 128
    device: str = "auto"
    input_price: float = 0.0
    output_price: float = 0.0
    again: bool = False
    """Replace the rows that a video has."""
    send: Send | None = None
    """The way of requests to the endpoint, if it is not HTTP."""
    name: str = "summaries"

    @property
    def settings(self) -> Mapping[str, Any]:
        return stored_settings(self)

    def prepare(self, library: Library) -> None:
        check_settings(library, self, "frames_a_scene", *(() if self.base_url else ("max_new_tokens",)))
        if self.base_url is None:
            open_writer(self.model, self.device, self.max_new_tokens)
        else:
            check_key(self)

    def rows_of(self, library: Library, video: VideoRow) -> StageRows:
        if self.base_url is None:
            return _rows(self, local_writer(open_writer(self.model, self.device, self.max_new_tokens)), library, video)
        return rows_at(self, _by_endpoint, library, video)

    def each(self, work: Callable[[RowsOf, VideoRow], T], videos: Iterable[VideoRow]) -> Generator[T, None, None]:
        return each_video(self, _by_endpoint, work, videos)

    def share(self, processes: int) -> Summaries:
        return replace(self, batch=shared_batch(self, processes))

    @property
    def role(self) -> Role:
        """The endpoint's settings."""
        return role_of(self)

    def write(self, library: Library, rows: Mapping[str, Any]) -> None:
        if self.again:
            library.additions.discard(self.name, self.model, *rows)
        library.scenes.add(rows)

    def repeated(self, library: Library, untitled: bool, outdated: bool) -> list[str]:
        """Ids of videos that have summaries and get them again: those with parts without one, or with newer words."""
        found = library.scenes.untitled(self.model) if untitled else []
        return [*found, *(library.scenes.outdated(self.model) if outdated else ())]


def _by_endpoint(stage: Summaries, thread: ModelThread, library: Library, video: VideoRow) -> StageRows:
    return _rows(stage, endpoint_writer(thread), library, video)


def _rows(stage: Summaries, write: Write, library: Library, video: VideoRow) -> StageRows:
    contents = write_contents(library, read_film(library, video), write, stage.frames_a_scene, stage.batch)
    held = library.scenes.rows(video.video_id) if stage.again else []
    rows = stage_rows(contents, stage.model, (row for row in held if row.model == stage.model))
    if (
        stage.again
        and not any(each.title for each in contents.written)
        and library.scenes.has_titles(video, stage.model)
    ):
        why = "no scene or chapter got a title that could be used; those that were there before stay"
        return replace(rows, failed=rows.failed or NoUsableReply(why))
    return rows
