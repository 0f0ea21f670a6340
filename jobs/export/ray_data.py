"""A source of Ray Data: frames of the complete videos of a library, read by tasks that need nothing but its place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from ray.data import read_datasource
from ray.data.block import BlockMetadata
from ray.data.datasource.datasource import Datasource, ReadTask

from kinodex.index.datasets.plan import FramePlan, plan_frames
from kinodex.index.datasets.reader import FrameReader
from kinodex.index.library import Library
from kinodex.index.store.database import data_bytes

if TYPE_CHECKING:
    import pyarrow as pa
    from ray.data import Dataset

    from kinodex.index.datasets.versions import Versions
    from kinodex.index.library import LibraryReader

DEFAULT_COLUMNS = ("video_id", "title", "frame_no", "time_s", "jpeg")
PIECE_ROWS = 512
"""Rows that a task reads at a time: 9 MB of pictures."""


class LibraryFrames(Datasource):
    """Frames of a plan. Every task reads a run of its pieces; which rows count was decided when it was made."""

    def __init__(self, plan: FramePlan, row_bytes: float) -> None:
        untyped: Any = super()
        untyped.__init__()
        self._plan = plan
        self._row_bytes = row_bytes

    def estimate_inmemory_data_size(self) -> int:
        """Estimate the bytes of all rows."""
        return int(self._plan.rows * self._row_bytes)

    def get_read_tasks(
        self, parallelism: int, per_task_row_limit: int | None = None, data_context: Any = None
    ) -> list[ReadTask]:
        """Split the pieces in their order into at most `parallelism` tasks of about as many rows each."""
        pieces = self._plan.pieces
        if not len(pieces):
            return []
        tasks = []
        ends = np.cumsum(pieces[:, 2])
        cuts = np.searchsorted(ends, ends[-1] * np.arange(1, max(parallelism, 1)) / max(parallelism, 1))
        for part in np.split(pieces, np.unique(cuts)):
            rows = int(part[:, 2].sum())
            if rows:
                size = int(rows * self._row_bytes)
                metadata = BlockMetadata(num_rows=rows, size_bytes=size, input_files=None, exec_stats=None)
                read = partial(_read, replace(self._plan, pieces=part))
                tasks.append(ReadTask(read, metadata, schema=self._plan.schema, per_task_row_limit=per_task_row_limit))
        return tasks


def _read(plan: FramePlan) -> Iterator[pa.Table]:
    """Read the pieces of one task."""
    reader = FrameReader(plan)
    for number in range(len(plan.pieces)):
        yield reader.read(plan.pieces[number : number + 1])


def read_library(
    library: LibraryReader | str,
    columns: Sequence[str] = DEFAULT_COLUMNS,
    *,
    videos: Sequence[str] = (),
    space: str | None = None,
    versions: Versions | None = None,
    **options: Any,
) -> Dataset:
    """Read the frames of these videos, or of all complete ones, as a dataset of Ray Data, whose `options` may be given.

    Workers need kinodex, and access to the library under the same place. Raises as `plan_frames` does.
    """
    reader = Library.open(library) if isinstance(library, str) else library
    plan = plan_frames(reader, columns, videos=videos, space=space, versions=versions, piece_rows=PIECE_ROWS)
    frames: Dataset = read_datasource(LibraryFrames(plan, _row_bytes(reader, plan)), **options)
    return frames


def _row_bytes(reader: LibraryReader, plan: FramePlan) -> float:
    """Estimate the bytes of a row: of pictures by the size of their table, of vectors by their dimension."""
    size = 64.0
    if "jpeg" in plan.choice.columns and (stored := reader.tables.count("frames")):
        size += data_bytes(reader.tables["frames"]) / stored
    if plan.choice.vectors:
        size += 2 * plan.schema.field("vector").type.list_size
    return size
