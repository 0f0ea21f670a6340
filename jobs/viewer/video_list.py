"""Videos of a library in the orders of its page, sorted again only where the library holds other videos than before."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, Literal, get_args

from index.library import Library
from index.rows import VideoRow
from jobs.errors import UsageError
from jobs.viewer.library_view import ROWS

Order = Literal["title", "length", "newest"]
ORDERS: tuple[str, ...] = get_args(Order)
COUNTED = ("captions", "detections", "speech")
DIGITS = re.compile(r"(\d+)")


class VideoList:
    """The complete videos of a library, by title, by length and by age; for one thread at a time."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._held: Mapping[str, VideoRow] | None = None
        self._sorted: dict[str, list[VideoRow]] = {}
        self._texts: dict[str, str] = {}

    def page(self, words: str = "", start: int = 0, order: str = "title") -> dict[str, Any]:
        """Page of `ROWS` videos from the `start`-th on, of the `count` with all these words in title or URI.

        A row has the fields of `VideoRow` and the count of its captions, detections and lines of speech. Raises
        UsageError for an unknown order.
        """
        if order not in ORDERS:
            raise UsageError(f"got sort {order!r}; it is one of {', '.join(ORDERS)}")
        rows = self._in_order(order)
        if parts := words.casefold().split():
            rows = [row for row in rows if all(part in self._texts[row.video_id] for part in parts)]
        shown = rows[start : start + ROWS]
        ids = [row.video_id for row in shown]
        counts = {stage: self._library.additions.counts(stage, video_ids=ids) for stage in COUNTED}
        counted = [asdict(row) | {stage: counts[stage].get(row.video_id, 0) for stage in COUNTED} for row in shown]
        return {"count": len(rows), "rows": counted}

    def _in_order(self, order: str) -> list[VideoRow]:
        held = self._library.visible.videos()
        if held is not self._held:  # the library makes a new mapping whenever its table of videos has changed
            self._held, self._sorted = held, {}
            self._texts = {row.video_id: f"{row.title}\n{row.uri}".casefold() for row in held.values()}
        if order not in self._sorted:
            self._sorted[order] = sorted(held.values(), key=SORT_KEYS[order])
        return self._sorted[order]


def natural(text: str) -> list[tuple[int, int, str]]:
    """Make a key that sorts `part 2` before `part 10`, upper and lower case alike."""
    parts = DIGITS.split(text.casefold())
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts if part]


SORT_KEYS: dict[str, Callable[[VideoRow], Any]] = {
    "title": lambda row: (natural(row.title), row.video_id),
    "length": lambda row: (-row.duration_s, natural(row.title), row.video_id),
    "newest": lambda row: (-row.ingested_at.timestamp(), natural(row.title), row.video_id),
}
