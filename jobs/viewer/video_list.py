"""Videos of a library in the orders of its page, sorted again only where the library holds other videos than before."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, Literal, get_args

from index.library import Library
from index.store.database import State
from jobs.errors import UsageError
from jobs.viewer.library_view import ROWS

Order = Literal["title", "length", "newest"]
ORDERS: tuple[str, ...] = get_args(Order)
COUNTED = ("captions", "detections", "speech", "text")
COLUMNS = ("video_id", "title", "uri", "duration_s", "ingested_at")
DIGITS = re.compile("[0-9]+")
LONGEST_NUMBER = 20


class VideoList:
    """The complete videos of a library, by title, by length and by age; for one thread at a time.

    Only the columns that are sorted and searched are read of all videos, and again once the table has changed.
    """

    def __init__(self, library: Library) -> None:
        self._library = library
        self._state: State | None = None
        self._rows: list[dict[str, Any]] = []
        self._sorted: dict[str, list[dict[str, Any]]] = {}

    def page(self, words: str = "", start: int = 0, order: str = "title") -> dict[str, Any]:
        """Page of `ROWS` videos from the `start`-th on, of the `count` with all these words in title or URI.

        A row has the fields of `VideoRow` and the count of its captions, detections, lines of speech and text. Raises
        UsageError for an unknown order.
        """
        if order not in ORDERS:
            raise UsageError(f"got sort {order!r}; it is one of {', '.join(ORDERS)}")
        rows = self._in_order(order)
        if parts := words.casefold().split():
            rows = [row for row in rows if all(part in row["text"] for part in parts)]
        ids = [row["video_id"] for row in rows[start : start + ROWS]]
        shown = self._library.visible.videos(ids)
        counts = self._library.additions.counts_of(ids) if ids else {}
        stages = {id_: {stage: counts.get((id_, stage), 0) for stage in COUNTED} for id_ in ids}
        return {"count": len(rows), "rows": [asdict(shown[id_]) | stages[id_] for id_ in ids if id_ in shown]}

    def _in_order(self, order: str) -> list[dict[str, Any]]:
        state = self._library.tables.state("videos")
        if state != self._state:
            self._state, self._sorted = state, {}
            self._rows = self._library.video_columns(COLUMNS).to_pylist()
            for row in self._rows:
                row["text"] = f"{row['title']}\n{row['uri']}".casefold()
        if order not in self._sorted:
            self._sorted[order] = sorted(self._rows, key=SORT_KEYS[order])
        return self._sorted[order]


def natural(text: str) -> str:
    """Make a key that sorts `part 2` before `part 10`, upper and lower case alike."""
    return DIGITS.sub(lambda digits: digits[0].zfill(LONGEST_NUMBER), text.casefold())


SORT_KEYS: dict[str, Callable[[Mapping[str, Any]], Any]] = {
    "title": lambda row: (natural(row["title"]), row["video_id"]),
    "length": lambda row: (-row["duration_s"], natural(row["title"]), row["video_id"]),
    "newest": lambda row: (-row["ingested_at"].timestamp(), natural(row["title"]), row["video_id"]),
}
