"""Captions of any parts of videos, written while agents ask: each complete by itself, found again by its part.

They are no optional stage (see `additions`), whose rows count when a whole video has them: whoever asks needs some
parts now, and what was paid for stays. So they have a table of their own, which searches and segments do not know.
It is made when first written to: libraries of before stay as they are. Of two that write a part at the same moment
the first is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from lancedb.expr import Expr
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_random

from index.errors import LibraryBusy
from index.rows import AddedFacts, ClipRow
from index.store.connection import storage_errors
from index.store.filters import equal
from index.store.indexes import AFTER_RUN, join_fragments, small_fragments
from index.store.leases import DEFAULT_LEASE, Lease
from index.store.schema import CLIPS
from index.store.tables import Tables

TABLE = "clips"
KEYS = ["video_id", "model", "part"]
LEASE, OWNER = "clips", "an agent that keeps captions"
COLUMNS = [*ClipRow.__slots__]
MANY_FRAGMENTS = 64
"""Each portion of captions is one."""
PATIENCE_S = 60.0
"""For another process that is making the table."""


def clips(tables: Tables, video_id: str, model: str) -> list[ClipRow]:
    """See Library.clips."""
    if not tables.has(TABLE):
        return []
    rows = tables.rows(TABLE, equal("video_id", video_id) & equal("model", model), COLUMNS)
    return [ClipRow(**row) for row in rows.sort_by([("start_s", "ascending"), ("end_s", "ascending")]).to_pylist()]


def add_clips(tables: Tables, rows: Sequence[ClipRow]) -> None:
    """See Library.add_clips."""
    if not rows:
        return
    _make_table(tables)
    parts = {(row.video_id, row.model, row.part): row for row in rows}
    tables.insert(TABLE, KEYS, [asdict(row) | {"part": row.part} for row in parts.values()])
    _tidy(tables)


def forget(tables: Tables, where: Expr) -> None:
    """Delete clips, such as those of videos that are taken out of the library."""
    if tables.has(TABLE):
        tables.delete(TABLE, where)


def clip_facts(tables: Tables) -> tuple[AddedFacts, ...]:
    """How many clips are kept of how many videos, by model."""
    if not tables.has(TABLE):
        return ()
    rows = tables.rows(TABLE, None, ["video_id", "model"]).group_by("model")
    counts = rows.aggregate([("video_id", "count_distinct"), ("video_id", "count")]).sort_by("model").to_pylist()
    return tuple(
        AddedFacts(TABLE, each["model"], each["video_id_count_distinct"], each["video_id_count"]) for each in counts
    )


def videos_with_clips(tables: Tables) -> set[str]:
    """Ids that clips are kept of, whether the library still holds these videos or not."""
    return set(tables.rows(TABLE, None, ["video_id"])["video_id"].unique().to_pylist()) if tables.has(TABLE) else set()


def _tidy(tables: Tables) -> None:
    """Join fragments now and then, by one process at a time: a library that is only asked is never refreshed."""
    if small_fragments(tables[TABLE]) <= MANY_FRAGMENTS:
        return
    try:
        with Lease(tables, LEASE, OWNER, DEFAULT_LEASE), storage_errors(tables.uri):
            join_fragments(tables[TABLE], MANY_FRAGMENTS, AFTER_RUN)
    except LibraryBusy:
        return  # whoever holds it is at it


def _make_table(tables: Tables) -> None:
    """Made by one process at a time, as all tables are (see `creation`)."""
    again = Retrying(
        retry=retry_if_exception_type(LibraryBusy),
        wait=wait_random(0.05, 0.2),
        stop=stop_after_delay(PATIENCE_S),
        reraise=True,
    )
    for attempt in again:
        with attempt:
            if not tables.has(TABLE):
                with Lease(tables, LEASE, OWNER, DEFAULT_LEASE):
                    if not tables.has(TABLE):
                        tables.create(TABLE, CLIPS)
