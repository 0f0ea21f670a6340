"""Notes: captions of any parts of videos, written while agents answer.

Each is complete by itself, and found again by its part. They are no optional stage (see `additions`), whose rows count
once a whole video has them: an agent needs some parts now, and what was paid for is stored. So they have a table of
their own, which searches and segments do not use. It is created on the first write. If two processes write a part at
the same moment, the first row stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from kinodex.index.clocks import moved
from kinodex.index.errors import LibraryBusy
from kinodex.index.rows import AddedFacts, NoteRow
from kinodex.index.store.database import Tables
from kinodex.index.store.filters import Filter, equal, one_of
from kinodex.index.store.indexes import AFTER_RUN, join_fragments, small_fragments
from kinodex.index.store.late_tables import ensure_table
from kinodex.index.store.leases import DEFAULT_LEASE, Lease
from kinodex.index.store.storage_errors import storage_errors
from kinodex.index.videos.visibility import VisibilityCache

NOTES = "notes"
KEYS = ["video_id", "model", "part"]
NOTES_LEASE, NOTES_OWNER = "notes", "an agent that keeps captions"
NOTE_COLUMNS = [*NoteRow.__slots__, "part"]
MANY_FRAGMENTS = 64
"""Each write of captions is one."""


class Notes:
    """Captions of parts of videos, by model."""

    def __init__(self, tables: Tables, visible: VisibilityCache) -> None:
        self._tables = tables
        self._visible = visible

    def read(self, video_id: str, model: str) -> list[NoteRow]:
        """Read a model's captions of parts of a video by time."""
        if not self._tables.has(NOTES):
            return []
        rows = self._tables.rows(NOTES, equal("video_id", video_id) & equal("model", model), [*NoteRow.__slots__])
        in_order = rows.sort_by([("start_s", "ascending"), ("end_s", "ascending")]).to_pylist()
        zero_s = self._visible.zeros_s([video_id])[video_id]
        return [NoteRow(**moved(row, -zero_s)) for row in in_order]

    def add(self, rows: Sequence[NoteRow]) -> None:
        """Store captions, visible at once; of each part and model the first one stays.

        Rows of videos that the library does not hold are left out. Several processes may write, beside anything else.
        """
        held = self._visible.videos({row.video_id for row in rows})
        zeros_s = self._visible.zeros_s(held)
        stored = [NoteRow(**moved(asdict(row), zeros_s[row.video_id])) for row in rows if row.video_id in held]
        parts = {(row.video_id, row.model, row.part): row for row in stored}
        if parts:
            ensure_table(self._tables, NOTES)
            columns = [{name: getattr(row, name) for name in NOTE_COLUMNS} for row in parts.values()]
            self._tables.insert(NOTES, KEYS, columns)
            self._tidy()
        gone = held.keys() - self._visible.videos(held)
        if gone:
            self.forget(one_of("video_id", sorted(gone)))

    def forget(self, where: Filter) -> None:
        """Delete the captions that match a filter."""
        if self._tables.has(NOTES):
            self._tables.delete(NOTES, where)

    def facts(self) -> tuple[AddedFacts, ...]:
        """Count captions and their videos, by model."""
        if not self._tables.has(NOTES):
            return ()
        rows = self._visible.seen(self._tables.rows(NOTES, None, ["video_id", "model"]))
        counts = (
            rows.group_by("model")
            .aggregate([("video_id", "count_distinct"), ("video_id", "count")])
            .sort_by("model")
            .to_pylist()
        )
        return tuple(
            AddedFacts(NOTES, each["model"], each["video_id_count_distinct"], each["video_id_count"]) for each in counts
        )

    def _tidy(self) -> None:
        """Join fragments now and then, in one process at a time: no run does it in a library that agents only read."""
        if small_fragments(self._tables, NOTES) <= MANY_FRAGMENTS:
            return
        try:
            with Lease(self._tables, NOTES_LEASE, NOTES_OWNER, DEFAULT_LEASE), storage_errors(self._tables.uri):
                join_fragments(self._tables, NOTES, MANY_FRAGMENTS, AFTER_RUN)
        except LibraryBusy:
            return  # the holder of the lease joins them
