"""Text that the pictures of videos show: a row for each line, from its first frame to its last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kinodex.index.additions import append_rows
from kinodex.index.annotations.newest_rows import newest_rows
from kinodex.index.rows import ScreenTextRow, known
from kinodex.index.store.database import Tables
from kinodex.index.videos.visibility import VisibilityCache

SCREEN_TEXT = "screen_text"
SCREEN_TEXT_COLUMNS = [*ScreenTextRow.__slots__]


class ScreenText:
    """Lines of text on screen, of the newest model that read a video."""

    def __init__(self, tables: Tables, visible: VisibilityCache) -> None:
        self._tables = tables
        self._visible = visible

    def rows(self, video_id: str, start_s: float | None = None, end_s: float | None = None) -> list[ScreenTextRow]:
        """Read the lines that share some time with `[start_s, end_s)`, by time, then from top to bottom."""
        found = newest_rows(
            self._tables, self._visible, SCREEN_TEXT, SCREEN_TEXT, video_id, [], SCREEN_TEXT_COLUMNS, start_s, end_s
        )
        rows = [known(ScreenTextRow, row | {"box": tuple(row["box"])}) for row in found]
        return sorted(rows, key=lambda row: (row.start_s, row.box[1], row.box[0]))

    def add(self, videos: Mapping[str, Sequence[Any]], model: str) -> None:
        """Append lines, as a `ScreenTextRow` has them, by video id; `Additions.complete` makes them visible."""
        append_rows(self._tables, self._visible, SCREEN_TEXT, videos, model=lambda _: model)
