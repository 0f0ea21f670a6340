"""From what the pipeline hands over to rows of the library's tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from index.filters import equal
from index.rows import SegmentRow, TranscriptRow
from index.schema import frame_key
from index.tables import Tables


class FrameLike(Protocol):
    """A frame as the pipeline hands it over; `vector` is a unit vector float16 `[dim]`, sizes are those of the JPEG."""

    @property
    def frame_no(self) -> int: ...
    @property
    def time_s(self) -> float: ...
    @property
    def width_px(self) -> int: ...
    @property
    def height_px(self) -> int: ...
    @property
    def jpeg(self) -> bytes: ...
    @property
    def vector(self) -> NDArray[np.float16]: ...


class SegmentLike(Protocol):
    """A segment as the pipeline finds it."""

    @property
    def start_s(self) -> float: ...
    @property
    def end_s(self) -> float: ...
    @property
    def kind(self) -> str: ...


class LineLike(Protocol):
    """A transcript line as the pipeline reads it."""

    @property
    def start_s(self) -> float: ...
    @property
    def end_s(self) -> float: ...
    @property
    def text(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def language(self) -> str | None: ...
    @property
    def speaker(self) -> str | None: ...


def add_frames(tables: Tables, vectors_table: str, video_id: str, rows: Sequence[FrameLike]) -> None:
    """See Library.add_frames; raises ValueError for vectors of another dimension than the table's."""
    if not rows:
        return
    vectors = np.stack([row.vector for row in rows]).astype(np.float16)
    schema = tables[vectors_table].schema
    dim = schema.field("vector").type.list_size
    if vectors.shape[1] != dim:
        raise ValueError(f"vectors have {vectors.shape[1]} numbers, the space has {dim}")
    ids = pa.array([video_id] * len(rows), pa.string())
    numbers = pa.array([row.frame_no for row in rows], pa.int32())
    times = pa.array([row.time_s for row in rows], pa.float64())
    flat = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), dim)
    tables.append("frames", _pictures(video_id, rows, ids, numbers, times, tables["frames"].schema))
    tables.append(vectors_table, pa.Table.from_arrays([ids, numbers, times, flat], schema=schema))


def _pictures(
    video_id: str, rows: Sequence[FrameLike], ids: pa.Array, numbers: pa.Array, times: pa.Array, schema: pa.Schema
) -> pa.Table:
    columns = [
        ids,
        numbers,
        pa.array([frame_key(video_id, row.frame_no) for row in rows], pa.int64()),
        times,
        pa.array([row.width_px for row in rows], pa.int32()),
        pa.array([row.height_px for row in rows], pa.int32()),
        pa.array([row.jpeg for row in rows], pa.binary()),
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def add_segments(tables: Tables, video_id: str, segments: Iterable[SegmentLike]) -> None:
    rows = [SegmentRow(video_id, number, s.start_s, s.end_s, s.kind) for number, s in enumerate(segments)]
    tables.append("segments", [asdict(row) for row in rows])


def add_transcript(tables: Tables, video_id: str, lines: Iterable[LineLike]) -> None:
    rows = [
        TranscriptRow(video_id, line.start_s, line.end_s, line.text, line.source, line.language, line.speaker)
        for line in lines
    ]
    tables.append("transcript", [asdict(row) for row in rows])


def frames_held(tables: Tables, vectors_table: str, video_id: str) -> tuple[int, int]:
    """How many pictures and how many vectors a video has."""
    where = equal("video_id", video_id)
    return tables.count("frames", where), tables.count(vectors_table, where)
