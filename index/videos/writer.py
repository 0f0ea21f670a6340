"""Write the rows of videos, count them, and make them visible to readers last, once all are there.

Rows are counted by one scan of ids and numbers: for checks, never for readers.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Protocol, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from index.rows import AddedSource, TranscriptRow, VideoRow
from index.store.database import Tables, is_local, space_tables
from index.store.filters import Filter, all_of, at_least, below, chunked, equal, one_of, other_than
from index.store.schema import CLIPS_TABLE, FRAME_NO_BITS, STAGE_TABLES, frame_key


class FrameLike(Protocol):
    """A frame as the pipeline delivers it; `vector` is a unit vector float16 `[dim]`, sizes are those of the JPEG."""

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
    def language(self) -> str | None: ...
    @property
    def speaker(self) -> str | None: ...
    @property
    def source(self) -> str: ...


class VideoWriter:
    """Everything that an ingest writes of videos. Rows come first, `complete` last; until then nobody sees them."""

    def __init__(self, tables: Tables, vectors_table: str) -> None:
        self._tables = tables
        self._vectors_table = vectors_table

    def add_frames(self, videos: Mapping[str, Sequence[FrameLike]]) -> None:
        """Append frames and their vectors by video id, in one commit a table. Few large ones are faster than many.

        Raises ValueError for vectors of another dimension than the library's space.
        """
        rows = [row for frames in videos.values() for row in frames]
        if not rows:
            return
        schema = self._tables[self._vectors_table].schema
        vectors = _matrix(rows, schema.field("vector").type.list_size)
        video_ids = [video_id for video_id, frames in videos.items() for _ in frames]
        ids = pa.array(video_ids, pa.string())
        numbers = pa.array([row.frame_no for row in rows], pa.int32())
        times = pa.array([row.time_s for row in rows], pa.float64())
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
        self._tables.append("frames", pa.Table.from_arrays(pictures, schema=self._tables["frames"].schema))
        self._tables.append(self._vectors_table, pa.Table.from_arrays([ids, numbers, times, vectors], schema=schema))

    def add_segments(self, videos: Mapping[str, Iterable[SegmentLike]]) -> None:
        """Append the segments of videos, all of each in order, by video id."""
        rows = [
            {"video_id": video_id, "segment_no": number, "start_s": s.start_s, "end_s": s.end_s, "kind": s.kind}
            for video_id, segments in videos.items()
            for number, s in enumerate(segments)
        ]
        self._tables.append("segments", rows)

    def add_transcript(self, videos: Mapping[str, Iterable[LineLike]]) -> None:
        """Append the transcript lines of videos by video id."""
        rows = [
            TranscriptRow(video_id, line.start_s, line.end_s, line.text, line.source, line.language, line.speaker)
            for video_id, lines in videos.items()
            for line in lines
        ]
        self._tables.append("transcript", [asdict(row) for row in rows])

    def complete(self, rows: Sequence[VideoRow]) -> tuple[str, ...]:
        """Make videos visible to readers: the last thing written of them, after everything else is on the disk.

        Returns the ids of rejected videos, which do not have exactly the frames, vectors, segments and lines that
        their row promises: two runs wrote them at once, and all their rows are deleted.
        """
        if not rows:
            return ()
        held = counts_of(self._tables, self._vectors_table, [row.video_id for row in rows])
        rejected = tuple(row.video_id for row in rows if not is_complete(row, held, self._vectors_table))
        self.discard(*rejected)
        accepted = [asdict(row) for row in rows if row.video_id not in rejected]
        if accepted and is_local(self._tables.uri):
            os.sync()  # Lance never does: after a power cut a row could else outlive the rows that it promises
        self._tables.upsert("videos", ["video_id"], accepted)
        return rejected

    def discard(self, *video_ids: str) -> None:
        """Delete all rows of videos, complete or left over, and all that was added to them.

        The row in `videos` goes first, so that nobody sees the rest.
        """
        tables = self._tables
        for ids in chunked(video_ids):
            clips = [CLIPS_TABLE] if tables.has(CLIPS_TABLE) else []
            for name in (
                *("videos", "sources", "frames", self._vectors_table, "segments", *clips, "additions"),
                *STAGE_TABLES.values(),
                *space_tables(tables),
            ):
                tables.delete(name, one_of("video_id", ids))

    def discard_frames(self, video_id: str, first_no: int, until_no: int | None) -> None:
        """Delete a video's frames and vectors numbered `[first_no, until_no)`; None: all from the first on."""
        where = equal("video_id", video_id) & at_least("frame_no", first_no)
        where = where if until_no is None else where & below("frame_no", until_no)
        for name in ("frames", self._vectors_table):
            self._tables.delete(name, where)


def _matrix(rows: Sequence[FrameLike], dim: int) -> pa.FixedSizeListArray:
    vectors = np.stack([row.vector for row in rows]).astype(np.float16)
    if vectors.shape[1] != dim:
        raise ValueError(f"vectors have {vectors.shape[1]} numbers, the space has {dim}")
    return pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), dim)


@dataclass(frozen=True, slots=True)
class Counts:
    """Rows of a table by video."""

    rows: Mapping[str, int]
    distinct: Mapping[str, int]
    """Number of rows if those with the same number count once; as `rows` where rows have no number."""


def counts_of(tables: Tables, vectors_table: str, video_ids: Sequence[str] | None = None) -> dict[str, Counts]:
    """Count the rows of these videos, or of all, in each table that ingest fills."""
    where = [] if video_ids is None else [one_of("video_id", video_ids)]
    return {name: count_rows(tables, name, where) for name in expected_rows(vectors_table)}


def expected_rows(vectors_table: str) -> dict[str, str]:
    """Map the tables that ingest fills to the column of `videos` that holds a video's number of rows there."""
    return {"frames": "frames", vectors_table: "frames", "segments": "segments", "transcript": "transcript_lines"}


def is_complete(row: VideoRow, held: Mapping[str, Counts], vectors_table: str) -> bool:
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
    if name == "transcript":
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
    numbers = {"segments": ["segment_no"], "transcript": []}
    return ["video_id", *numbers.get(name, ["frame_no"])]


def ingested_only(name: str) -> list[Filter]:
    """Make the filter for rows that ingest itself writes into a table."""
    return [other_than("source", source) for source in get_args(AddedSource)] if name == "transcript" else []


def _keys(batch: pa.RecordBatch, positions: dict[str, int]) -> NDArray[np.int64]:
    """Make one integer a row: its video's position in the upper bits, its number in the lower ones."""
    ids, *numbers = (batch.column(name) for name in batch.schema.names)
    ids = ids.dictionary_encode()
    known = [positions.setdefault(video_id, len(positions)) for video_id in ids.dictionary.to_pylist()]
    keys: NDArray[np.int64] = np.array(known, np.int64)[ids.indices.to_numpy()] << FRAME_NO_BITS
    for column in numbers:
        keys |= column.to_numpy()
    return keys


def _by_video(keys: NDArray[np.int64], positions: Iterable[str]) -> dict[str, int]:
    names = list(positions)
    counted = np.bincount(keys >> FRAME_NO_BITS, minlength=len(names))
    return dict(zip(names, counted.tolist(), strict=True))
