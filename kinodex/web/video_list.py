"""Videos of a library in the orders of its page, sorted again only where the library holds other videos than before."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict
from typing import Any

from kinodex.index.durations import counted
from kinodex.index.kinds import KINDS, LINE_KINDS, KindName
from kinodex.index.library import Library
from kinodex.index.rows import VideoRow
from kinodex.index.store.database import State
from kinodex.index.text import composed
from kinodex.jobs.errors import UsageError

ROWS = 100
"""Rows of a table that the page shows at a time."""

COUNTED = (*LINE_KINDS, "detections")
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

    def page(
        self, words: str = "", start: int = 0, order: str = "title", among: Collection[str] | None = None
    ) -> dict[str, Any]:
        """Page of `ROWS` videos from the `start`-th on, of the `count` with all these words in title or URI.

        Of all videos, or `among` those of these ids.

        A row has the fields of `VideoRow` and, as `counts`, what the library holds of it in words. Raises UsageError
        for an unknown order.
        """
        if order not in SORT_KEYS:
            raise UsageError(f"got sort {order!r}; it is one of {', '.join(SORT_KEYS)}")
        rows = self._in_order(order)
        if parts := composed(words.casefold()).split():
            rows = [row for row in rows if all(part in row["text"] for part in parts)]
        if among is not None:
            rows = [row for row in rows if row["video_id"] in among]
        ids = [row["video_id"] for row in rows[start : start + ROWS]]
        shown = self._library.visible.videos(ids)
        counts = self._library.additions.counts_of(ids) if ids else {}
        added = {id_: {kind: counts.get((id_, kind), 0) for kind in COUNTED} for id_ in ids}
        return {"count": len(rows), "rows": [_with_counts(shown[id_], added[id_]) for id_ in ids if id_ in shown]}

    def _in_order(self, order: str) -> list[dict[str, Any]]:
        state = self._library.tables.state("videos")
        if state != self._state:
            self._state, self._sorted = state, {}
            self._rows = self._library.video_columns(COLUMNS).to_pylist()
            for row in self._rows:
                row["text"] = composed(f"{row['title']}\n{row['uri']}".casefold())
        if order not in self._sorted:
            self._sorted[order] = sorted(self._rows, key=SORT_KEYS[order])
        return self._sorted[order]


def _with_counts(video: VideoRow, added: Mapping[KindName, int]) -> dict[str, Any]:
    """Give the fields of a video and, as `counts`, what the library holds of it in words: "12 lines of speech"."""
    counts: dict[KindName, int] = {**added, "speech": added["speech"] + video.speech_lines}
    words = [KINDS[kind].count(number) for kind, number in counts.items() if number]
    return asdict(video) | {"counts": [*([counted(video.frames, "frame")] if video.frames else []), *words]}


def natural(text: str) -> str:
    """Make a key that sorts `part 2` before `part 10`, upper and lower case alike."""
    return DIGITS.sub(lambda digits: digits[0].zfill(LONGEST_NUMBER), text.casefold())


SORT_KEYS: dict[str, Callable[[Mapping[str, Any]], Any]] = {
    "title": lambda row: (natural(row["title"]), row["video_id"]),
    "length": lambda row: (-row["duration_s"], natural(row["title"]), row["video_id"]),
    "newest": lambda row: (-row["ingested_at"].timestamp(), natural(row["title"]), row["video_id"]),
}
