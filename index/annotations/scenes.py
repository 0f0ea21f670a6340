"""Scenes and chapters of videos, each with a title and a summary.

`kinodex add summaries` writes the rows. Libraries that were made before have no such table, which is one without rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Literal

from index.annotations.newest_rows import newest_rows
from index.clock import moved
from index.rows import SceneRow, VideoRow
from index.store.database import Tables
from index.store.filters import equal, one_of
from index.store.late_tables import present
from index.videos.visibility import VisibilityCache

TABLE, STAGE = "scenes", "summaries"
COLUMNS = [*SceneRow.__slots__]
SOURCES = ("captions", "speech", "text")
"""Stages whose rows summaries are written from."""


class Scenes:
    """Scenes and chapters, by the newest model that summarised a video."""

    def __init__(self, tables: Tables, visible: VisibilityCache) -> None:
        self._tables = tables
        self._visible = visible

    def rows(self, video_id: str, level: Literal["scene", "chapter"] | None = None) -> list[SceneRow]:
        """Read the scenes and chapters of a video, or those of one level, by time, a chapter before its scenes.

        Raises UnknownVideo.
        """
        of_level = [] if level is None else [equal("level", level)]
        found = newest_rows(self._tables, self._visible, TABLE, STAGE, video_id, of_level, COLUMNS)
        return sorted((SceneRow(**row) for row in found), key=lambda row: (row.start_s, row.level, row.number))

    def add(self, videos: Mapping[str, Sequence[SceneRow]]) -> None:
        """Append rows by video id; `Additions.complete` makes them visible. `Additions` makes the table before."""
        zeros_s = self._visible.zeros_s(videos)
        self._tables.append(
            TABLE, [moved(asdict(row), zeros_s[video_id]) for video_id, rows in videos.items() for row in rows]
        )

    def outdated(self, model: str) -> list[str]:
        """List the ids of videos that got captions, speech or text on screen after this model's summaries."""
        stages = one_of("stage", [STAGE, *SOURCES])
        rows = self._tables.rows("additions", stages, ["video_id", "stage", "model", "added_at"]).to_pylist()
        written = {row["video_id"]: row["added_at"] for row in rows if (row["stage"], row["model"]) == (STAGE, model)}
        later = {
            row["video_id"]
            for row in rows
            if row["stage"] in SOURCES and row["video_id"] in written and row["added_at"] > written[row["video_id"]]
        }
        return sorted(self._visible.videos(later))

    def untitled(self, model: str) -> list[str]:
        """List the ids of videos that have parts to which this model gave no title that could be used."""
        models = self._visible.models(STAGE)
        if not any(model in each for each in models.values()) or not present(self._tables, [TABLE]):
            return []
        rows = self._tables.rows(TABLE, equal("model", model) & equal("title", ""), ["video_id"])
        found = set(rows["video_id"].to_pylist())
        return sorted(video_id for video_id in self._visible.videos(found) if model in models.get(video_id, ()))

    def has_titles(self, video: VideoRow, model: str) -> bool:
        """True if this model's summaries of a video, complete, have a title."""
        if model not in self._visible.models(STAGE, [video.video_id]).get(video.video_id, ()):
            return False
        of_video = equal("video_id", video.video_id) & equal("model", model)
        titles = self._tables.rows(TABLE, of_video, ["title"])["title"].to_pylist()
        return any(titles)
