"""Scenes and chapters of videos, each with a title and a summary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from kinodex.index.additions import append_rows
from kinodex.index.annotations.newest_rows import newest_rows
from kinodex.index.kinds import LINE_KINDS
from kinodex.index.rows import ChapterRow, VideoRow
from kinodex.index.store.database import Tables
from kinodex.index.store.filters import equal, one_of
from kinodex.index.store.held_tables import present
from kinodex.index.videos.visibility import VisibilityCache

CHAPTERS = "chapters"
CHAPTER_COLUMNS = [*ChapterRow.__slots__]
EXACT_S = 1e-6
CHAPTER_SOURCES = (*LINE_KINDS, "shots")
"""Stages whose rows summaries are written from."""


class Chapters:
    """Scenes and chapters, by the newest model that summarised a video."""

    def __init__(self, tables: Tables, visible: VisibilityCache) -> None:
        self._tables = tables
        self._visible = visible

    def rows(self, video_id: str, level: Literal["scene", "chapter"] | None = None) -> list[ChapterRow]:
        """Read the scenes and chapters of a video, or those of one level, by time, a chapter before its scenes."""
        of_level = [] if level is None else [equal("level", level)]
        found = newest_rows(self._tables, self._visible, CHAPTERS, video_id, CHAPTER_COLUMNS, of_level)
        cuts = newest_rows(self._tables, self._visible, "shots", video_id, ["start_s"]) if found else []
        if cuts_s := [row["start_s"] for row in cuts]:  # shots that were found later, perhaps
            gap_s = 1 / (self._visible.video(video_id).sample_fps or 1.0)
            found = [row | {name: _at_cut(row[name], cuts_s, gap_s) for name in ("start_s", "end_s")} for row in found]
        return sorted((ChapterRow(**row) for row in found), key=lambda row: (row.start_s, row.level, row.number))

    def add(self, videos: Mapping[str, Sequence[ChapterRow]]) -> None:
        """Append rows by video id; `Additions.complete` makes them visible. `Additions` makes the table before."""
        append_rows(self._tables, self._visible, CHAPTERS, videos)

    def outdated(self, model: str) -> list[str]:
        """List the ids of videos that got lines of any kind, or shots, after this model's summaries."""
        stages = one_of("stage", [CHAPTERS, *CHAPTER_SOURCES])
        rows = self._tables.rows("additions", stages, ["video_id", "stage", "model", "added_at"]).to_pylist()
        written = {
            row["video_id"]: row["added_at"] for row in rows if (row["stage"], row["model"]) == (CHAPTERS, model)
        }
        sources = [row for row in rows if row["stage"] in CHAPTER_SOURCES and row["video_id"] in written]
        later = {row["video_id"] for row in sources if row["added_at"] > written[row["video_id"]]}
        return sorted(self._visible.videos(later))

    def untitled(self, model: str) -> list[str]:
        """List the ids of videos that have parts to which this model gave no title that could be used."""
        models = self._visible.models(CHAPTERS)
        if not any(model in each for each in models.values()) or not present(self._tables, [CHAPTERS]):
            return []
        rows = self._tables.rows(CHAPTERS, equal("model", model) & equal("title", ""), ["video_id"])
        found = set(rows["video_id"].to_pylist())
        return sorted(video_id for video_id in self._visible.videos(found) if model in models.get(video_id, ()))

    def has_titles(self, video: VideoRow, model: str) -> bool:
        """Return True if this model's summaries of a video, complete, have a title."""
        if model not in self._visible.models(CHAPTERS, [video.video_id]).get(video.video_id, ()):
            return False
        of_video = equal("video_id", video.video_id) & equal("model", model)
        titles = self._tables.rows(CHAPTERS, of_video, ["title"])["title"].to_pylist()
        return any(titles)


def _at_cut(time_s: float, cuts_s: Sequence[float], gap_s: float) -> float:
    """Return the cut that lies between a sampled time and the sample before it; the time itself without one."""
    return max((cut for cut in cuts_s if time_s - gap_s - EXACT_S <= cut <= time_s), default=time_s)
