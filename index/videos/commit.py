"""The last step of writing videos: their rows are counted, and only then do readers see them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from index.rows import VideoRow
from index.store.connection import is_local
from index.store.filters import one_of
from index.store.tables import Tables
from index.videos.row_counts import Counts, count_rows
from index.videos.write import discard


def complete(tables: Tables, vectors_table: str, rows: Sequence[VideoRow]) -> tuple[str, ...]:
    """See Library.complete."""
    if not rows:
        return ()
    held = counts_of(tables, vectors_table, [row.video_id for row in rows])
    rejected = tuple(row.video_id for row in rows if not is_complete(row, held, vectors_table))
    discard(tables, vectors_table, rejected)
    accepted = [asdict(row) for row in rows if row.video_id not in rejected]
    if accepted and is_local(tables.uri):
        os.sync()  # LanceDB never does: after a power cut a row could else outlive what it vouches for
    tables.upsert("videos", ["video_id"], accepted)
    return rejected


def counts_of(tables: Tables, vectors_table: str, video_ids: Sequence[str] | None = None) -> dict[str, Counts]:
    """What each table that ingest fills holds of these videos, or of all."""
    where = [] if video_ids is None else [one_of("video_id", video_ids)]
    return {name: count_rows(tables, name, where) for name in expected_rows(vectors_table)}


def expected_rows(vectors_table: str) -> dict[str, str]:
    """The tables that ingest fills, and the column of `videos` that says how many rows a video has there."""
    return {"frames": "frames", vectors_table: "frames", "segments": "segments", "transcript": "transcript_lines"}


def is_complete(row: VideoRow, held: Mapping[str, Counts], vectors_table: str) -> bool:
    """Whether a video's rows are all there, once."""
    return all(
        held[name].rows.get(row.video_id, 0) == held[name].distinct.get(row.video_id, 0) == getattr(row, column)
        for name, column in expected_rows(vectors_table).items()
    )
