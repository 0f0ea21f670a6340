"""From what the pipeline hands over to rows of the library's tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Protocol

import numpy as np
import pyarrow as pa
from lancedb.expr import col, lit
from numpy.typing import NDArray

from index.annotations.additions import forget_video
from index.annotations.speech import SpeechLike
from index.rows import TranscriptRow
from index.store.filters import chunked, equal, one_of
from index.store.schema import frame_key
from index.store.tables import Tables


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


class LineLike(SpeechLike, Protocol):
    """A transcript line as the pipeline reads it."""

    @property
    def source(self) -> str: ...


def add_frames(tables: Tables, vectors_table: str, videos: Mapping[str, Sequence[FrameLike]]) -> None:
    """See Library.add_frames; raises ValueError for vectors of another dimension than the table's."""
    rows = [row for frames in videos.values() for row in frames]
    if not rows:
        return
    vectors = np.stack([row.vector for row in rows]).astype(np.float16)
    schema = tables[vectors_table].schema
    dim = schema.field("vector").type.list_size
    if vectors.shape[1] != dim:
        raise ValueError(f"vectors have {vectors.shape[1]} numbers, the space has {dim}")
    video_ids = [video_id for video_id, frames in videos.items() for _ in frames]
    ids = pa.array(video_ids, pa.string())
    numbers = pa.array([row.frame_no for row in rows], pa.int32())
    times = pa.array([row.time_s for row in rows], pa.float64())
    flat = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), dim)
    keys = [frame_key(video_id, row.frame_no) for video_id, row in zip(video_ids, rows, strict=True)]
    pictures = [
        ids,
        numbers,
        pa.array(keys, pa.int64()),
        times,
        pa.array([row.width_px for row in rows], pa.int32()),
        pa.array([row.height_px for row in rows], pa.int32()),
        pa.array([row.jpeg for row in rows], pa.binary()),
    ]
    tables.append("frames", pa.Table.from_arrays(pictures, schema=tables["frames"].schema))
    tables.append(vectors_table, pa.Table.from_arrays([ids, numbers, times, flat], schema=schema))


def add_segments(tables: Tables, videos: Mapping[str, Iterable[SegmentLike]]) -> None:
    rows = [
        {"video_id": video_id, "segment_no": number, "start_s": s.start_s, "end_s": s.end_s, "kind": s.kind}
        for video_id, segments in videos.items()
        for number, s in enumerate(segments)
    ]
    tables.append("segments", rows)


def add_transcript(tables: Tables, videos: Mapping[str, Iterable[LineLike]]) -> None:
    rows = [
        TranscriptRow(video_id, line.start_s, line.end_s, line.text, line.source, line.language, line.speaker)
        for video_id, lines in videos.items()
        for line in lines
    ]
    tables.append("transcript", [asdict(row) for row in rows])


def discard(tables: Tables, vectors_table: str, video_ids: Sequence[str]) -> None:
    """See Library.discard. The row in `videos` goes first, so that nobody sees what is left."""
    for ids in chunked(video_ids):
        where = one_of("video_id", ids)
        for name in ("videos", "sources", "frames", vectors_table, "segments", "transcript"):
            tables.delete(name, where)
        forget_video(tables, where)


def discard_frames(
    tables: Tables, vectors_table: str, video_id: str, first_number: int, until_number: int | None
) -> None:
    """See Library.discard_frames."""
    where = equal("video_id", video_id) & (col("frame_no") >= lit(first_number))
    where = where if until_number is None else where & (col("frame_no") < lit(until_number))
    for name in ("frames", vectors_table):
        tables.delete(name, where)
