"""Captions of any parts of videos, written while agents answer: each complete by itself, found again by its part.

They are no optional stage (see `additions`), whose rows count once a whole video has them: an agent needs some parts
now, and what was paid for is stored. So they have a table of their own, which searches and segments do not use.
It is created on the first write: older libraries stay as they are. If two processes write a part at the same moment,
the first row stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from index.clock import moved
from index.errors import LibraryBusy
from index.rows import AddedFacts, ClipRow
from index.store.database import Tables, storage_errors
from index.store.ensure_table import ensure_table
from index.store.filters import Filter, equal, one_of
from index.store.indexes import AFTER_RUN, join_fragments, small_fragments
from index.store.leases import DEFAULT_LEASE, Lease
from index.videos.visibility import VisibilityCache

CLIPS_TABLE = "clips"
KEYS = ["video_id", "model", "part"]
LEASE, OWNER = "clips", "an agent that keeps captions"
COLUMNS = [*ClipRow.__slots__]
MANY_FRAGMENTS = 64
"""Each write of captions is one."""


class ClipCaptions:
    """Captions of parts of videos, by model."""

    def __init__(self, tables: Tables, visible: VisibilityCache) -> None:
        self._tables = tables
        self._visible = visible

    def read(self, video_id: str, model: str) -> list[ClipRow]:
        """Read a model's captions of parts of a video, by time."""
        if not self._tables.has(CLIPS_TABLE):
            return []
        rows = self._tables.rows(CLIPS_TABLE, equal("video_id", video_id) & equal("model", model), COLUMNS)
        in_order = rows.sort_by([("start_s", "ascending"), ("end_s", "ascending")]).to_pylist()
        zero_s = self._visible.zeros_s([video_id])[video_id]
        return [ClipRow(**moved(row, -zero_s)) for row in in_order]

    def add(self, rows: Sequence[ClipRow]) -> None:
        """Store captions, visible at once; of each part and model the first one stays.

        Rows of videos that the library does not hold are left out. Several processes may write, beside anything else.
        """
        held = self._visible.videos({row.video_id for row in rows})
        zeros_s = self._visible.zeros_s(held)
        stored = [ClipRow(**moved(asdict(row), zeros_s[row.video_id])) for row in rows if row.video_id in held]
        parts = {(row.video_id, row.model, row.part): row for row in stored}
        if parts:
            ensure_table(self._tables, CLIPS_TABLE)
            self._tables.insert(CLIPS_TABLE, KEYS, [asdict(row) | {"part": row.part} for row in parts.values()])
            self._tidy()
        gone = held.keys() - self._visible.videos(held)
        if gone:
            self.forget(one_of("video_id", sorted(gone)))

    def forget(self, where: Filter) -> None:
        """Delete the captions that match a filter."""
        if self._tables.has(CLIPS_TABLE):
            self._tables.delete(CLIPS_TABLE, where)

    def facts(self) -> tuple[AddedFacts, ...]:
        """Count captions and their videos, by model."""
        if not self._tables.has(CLIPS_TABLE):
            return ()
        rows = self._tables.rows(CLIPS_TABLE, None, ["video_id", "model"]).group_by("model")
        counts = rows.aggregate([("video_id", "count_distinct"), ("video_id", "count")]).sort_by("model").to_pylist()
        return tuple(
            AddedFacts(CLIPS_TABLE, each["model"], each["video_id_count_distinct"], each["video_id_count"])
            for each in counts
        )

    def _tidy(self) -> None:
        """Join fragments now and then, in one process at a time: no run does it in a library that agents only read."""
        if small_fragments(self._tables, CLIPS_TABLE) <= MANY_FRAGMENTS:
            return
        try:
            with Lease(self._tables, LEASE, OWNER, DEFAULT_LEASE), storage_errors(self._tables.uri):
                join_fragments(self._tables, CLIPS_TABLE, MANY_FRAGMENTS, AFTER_RUN)
        except LibraryBusy:
            return  # the holder of the lease joins them
