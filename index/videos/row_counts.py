"""Counts of the rows of videos in the tables that ingest fills, by one scan of ids and numbers: for checks only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kinodex.index.rows import AddedSource, VideoRow
from kinodex.index.store.database import Tables
from kinodex.index.store.filters import Filter, all_of, one_of, other_than
from kinodex.index.store.frame_keys import FRAME_NO_BITS


@dataclass(frozen=True, slots=True)
class Counts:
    """Rows of a table by video."""

    rows: Mapping[str, int]
    distinct: Mapping[str, int]
    """Number of rows if those with the same number count once; as `rows` where rows have no number."""


def counts_of(tables: Tables, vectors_table: str | None, video_ids: Sequence[str] | None = None) -> dict[str, Counts]:
    """Count the rows of these videos, or of all, in each table that ingest fills."""
    where = [] if video_ids is None else [one_of("video_id", video_ids)]
    return {name: count_rows(tables, name, where) for name in expected_rows(vectors_table)}


def expected_rows(vectors_table: str | None) -> dict[str, str]:
    """Map the tables that ingest fills to the column of `videos` that holds a video's number of rows there."""
    vectors = {} if vectors_table is None else {vectors_table: "frames"}
    return {"frames": "frames", **vectors, "segments": "segments", "speech": "speech_lines"}


def is_complete(row: VideoRow, held: Mapping[str, Counts], vectors_table: str | None) -> bool:
    """Check that a video's rows are all there, once."""
    return all(
        held[name].rows.get(row.video_id, 0) == held[name].distinct.get(row.video_id, 0) == getattr(row, column)
        for name, column in expected_rows(vectors_table).items()
    )


def count_rows(tables: Tables, name: str, where: Sequence[Filter] = ()) -> Counts:
    """Count the rows of every video that match a filter, leaving out those that an optional stage added."""
    positions: dict[str, int] = {}
    parts = tables.batches(name, all_of([*where, *ingested_only(name)]), key_columns(name))
    keys = [_keys(part, positions) for part in parts]
    found = np.sort(np.concatenate(keys)) if keys else np.empty(0, np.int64)
    rows = _by_video(found, positions)
    if name == "speech":
        return Counts(rows, rows)
    once = found[np.diff(found, prepend=-1) > 0]  # np.unique takes ten times as long
    return Counts(rows, _by_video(once, positions))


def rows_by_video(tables: Tables, name: str) -> Counter[str]:
    """Count the rows of all videos, duplicates included, in little memory."""
    counted: Counter[str] = Counter()
    for part in tables.batches(name, all_of(ingested_only(name)), ["video_id"]):
        values = part.column("video_id").value_counts()
        counted.update(dict(zip(values.field("values").to_pylist(), values.field("counts").to_pylist(), strict=True)))
    return counted


def key_columns(name: str) -> list[str]:
    """List the columns that identify a row of this table; transcript lines have none but the video's id."""
    numbers = {"segments": ["segment_no"], "speech": []}
    return ["video_id", *numbers.get(name, ["frame_no"])]


def ingested_only(name: str) -> list[Filter]:
    """Make the filter for rows that ingest itself writes into a table."""
    return [other_than("source", source) for source in get_args(AddedSource)] if name == "speech" else []


def _keys(batch: pa.RecordBatch, positions: dict[str, int]) -> NDArray[np.int64]:
    """Make one integer a row: its video's position in the upper bits, its number in the lower ones."""
    ids, *numbers = (batch.column(name) for name in batch.schema.names)
    ids = ids.dictionary_encode()
    known = [positions.setdefault(video_id, len(positions)) for video_id in ids.dictionary.to_pylist()]
    keys: NDArray[np.int64] = np.array(known, np.int64)[ids.indices.to_numpy()] << FRAME_NO_BITS
    for column in numbers:
        keys |= column.to_numpy().astype(np.int64) & ((1 << FRAME_NO_BITS) - 1)  # a damaged one may be below 0
    return keys


def _by_video(keys: NDArray[np.int64], positions: Iterable[str]) -> dict[str, int]:
    names = list(positions)
    counted = np.bincount(keys >> FRAME_NO_BITS, minlength=len(names))
    return dict(zip(names, counted.tolist(), strict=True))
