"""Bring indexes up to date, join small files and delete outdated ones, from one process."""

from __future__ import annotations

from typing import Any

from lancedb.index import Bitmap, BTree, HnswSq

from index.library import Library
from index.store.database import retry_on_conflict, space_tables, storage_errors
from index.store.indexes import AFTER_RUN, Thresholds, join_fragments, optimize
from index.store.schema import CLIPS_TABLE

BY_VIDEO = ("frames", "segments", "captions", "detections", "transcript", "videos", "additions")
"""Tables that are queried for the rows of a video."""
SMALL = ("segments", "captions", "detections", "transcript", "videos", "additions", "sources", "failures", "runs")
"""Tables whose fragments are quickly joined."""


def refresh(library: Library, when: Thresholds = AFTER_RUN) -> None:
    """Create the indexes that pay by now, update stale ones, join fragments and delete outdated files.

    Writers and readers need not stop. `when` is AFTER_RUN at the end of a run, DURING_RUN now and then in a long one.
    """
    tables = library.tables
    spaces = list(space_tables(tables))
    clips = [CLIPS_TABLE] if tables.has(CLIPS_TABLE) else []
    with storage_errors(tables.uri):
        for name in (*BY_VIDEO, *clips, *spaces):
            _index_values(tables[name], "video_id", BTree(), when)
        _index_values(tables["frames"], "frame_key", BTree(), when)
        _index_values(tables["sources"], "uri", BTree(), when)
        _index_values(tables["detections"], "label", Bitmap(), when)
        join_fragments(tables["frames"], when.picture_fragments, when)
        for name in (*SMALL, *clips):
            join_fragments(tables[name], when.fragments, when)
        for name in spaces:
            join_fragments(tables[name], when.vector_fragments, when)
        for name in (*spaces, "captions"):
            _index_vectors(tables[name], when)
        for name in ("transcript", "captions"):
            if _is_stale(tables[name], "text", when.stale_lines, when.stale_share):
                optimize(tables[name], when)
        optimize(tables["leases"], when)  # renewed every few seconds, each time as a new version of the table


def _index_values(table: Any, column: str, kind: BTree | Bitmap, when: Thresholds) -> None:
    """Rebuild a stale index: that takes 0.1 s a million rows, and optimizing would copy pictures."""
    is_due = not _indexes(table, column) and table.count_rows() >= when.scalar_rows
    if is_due or _is_stale(table, column, when.stale_rows, when.stale_share):
        retry_on_conflict(lambda: table.create_index(column, config=kind, name=f"by_{column}"))


def _index_vectors(table: Any, when: Thresholds) -> None:
    """Index vectors; rows without one, such as captions may be, do not count: an index of none cannot be built."""
    if not _indexes(table, "vector"):
        if table.count_rows() >= when.vector_rows and table.count_rows("vector IS NOT NULL") >= when.vector_rows:
            graph = HnswSq(distance_type="cosine")
            retry_on_conflict(lambda: table.create_index("vector", config=graph, name="by_vector"))
    elif _is_stale(table, "vector", when.stale_rows, when.stale_share):
        optimize(table, when)


def _indexes(table: Any, column: str) -> list[Any]:
    return [index for index in table.list_indices() if index.columns == [column]]


def _is_stale(table: Any, column: str, rows: int, share: float) -> bool:
    """Check that the index of a column, if there is one, lacks more rows than this and a larger share of them."""
    missing = max((index.num_unindexed_rows for index in _indexes(table, column)), default=0)
    return missing > rows and missing > share * table.count_rows()
