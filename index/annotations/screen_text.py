"""Text that the pictures of videos show: a row for each line, from its first frame to its last.

`kinodex add text` writes the rows. Libraries that were made before have no such table, which is one without rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from index.annotations.newest_rows import newest_rows
from index.clock import moved
from index.rows import ScreenTextRow
from index.store.database import Tables
from index.time_protocols import TimedText
from index.videos.visibility import VisibilityCache

TABLE = "screen_text"
COLUMNS = [*ScreenTextRow.__slots__]


class ScreenLineLike(TimedText, Protocol):
    """A line that is on screen in `[start_s, end_s)`; `box` is x0, y0, x1, y1, each 0 to 1."""

    @property
    def confidence(self) -> float: ...
    @property
    def box(self) -> Sequence[float]: ...
    @property
    def frames(self) -> int: ...
    @property
    def language(self) -> str | None: ...


class ScreenText:
    """Lines of text on screen, of the newest model that read a video."""

    def __init__(self, tables: Tables, visible: VisibilityCache) -> None:
        self._tables = tables
        self._visible = visible

    def rows(self, video_id: str, start_s: float | None = None, end_s: float | None = None) -> list[ScreenTextRow]:
        """Read the lines that share some time with `[start_s, end_s)`, by time, then from top to bottom.

        Raises UnknownVideo.
        """
        found = newest_rows(self._tables, self._visible, TABLE, "text", video_id, [], COLUMNS, start_s, end_s)
        rows = [ScreenTextRow(**row | {"box": tuple(row["box"])}) for row in found]
        return sorted(rows, key=lambda row: (row.start_s, row.box[1], row.box[0]))

    def add(self, videos: Mapping[str, Sequence[ScreenLineLike]], model: str) -> None:
        """Append lines by video id; `Additions.complete` makes them visible. `Additions` makes the table before."""
        zeros_s = self._visible.zeros_s(videos)
        rows: list[dict[str, Any]] = [
            {
                "video_id": video_id,
                "start_s": line.start_s,
                "end_s": line.end_s,
                "text": line.text,
                "confidence": line.confidence,
                "box": list(line.box),
                "frames": line.frames,
                "language": line.language,
                "model": model,
            }
            for video_id, lines in videos.items()
            for line in lines
        ]
        self._tables.append(TABLE, [moved(row, zeros_s[row["video_id"]]) for row in rows])
