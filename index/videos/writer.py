"""Write the rows of videos, and make them visible to readers last, once all are there."""

from __future__ import annotations

import os
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from index.clock import moved
from index.redact import redact_uri
from index.rows import TranscriptRow, VideoRow
from index.store.database import Tables, is_local, space_tables
from index.store.filters import at_least, below, chunked, equal, one_of
from index.store.late_tables import present
from index.store.schema import (
    CHECKSUM,
    LAST_FRAME_NO,
    SENTENCES_PREFIX,
    STAGE_TABLES,
    VIDEO_DIGESTS,
    frame_keys,
)
from index.time_protocols import SpokenText, Timed
from index.videos.digests import Digests, digests_by_video, read_digests, video_digests
from index.videos.known_keys import KnownKeys
from index.videos.new_rows import NewRows
from index.videos.row_counts import counts_of, expected_rows, ingested_only, is_complete


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


class SegmentLike(Timed, Protocol):
    """A segment as the pipeline finds it."""

    @property
    def kind(self) -> str: ...


class LineLike(SpokenText, Protocol):
    """A transcript line as the pipeline reads it."""

    @property
    def source(self) -> str: ...


class VideoWriter:
    """Everything that an ingest writes of videos. Rows come first, `complete` last; until then nobody sees them.

    Times of frames, segments and lines are presentation times, as an ingest reads them from the file.
    """

    def __init__(self, tables: Tables, vectors_table: str) -> None:
        self._tables = tables
        self._vectors_table = vectors_table
        self._new_rows: dict[str, NewRows] = {}
        self._known: KnownKeys | None = None

    def note_rows(self) -> None:
        """Take note of the rows that are there, so that `complete` need not look at them again.

        For a run that then deletes the rows of all incomplete videos, and is the only one to complete any.
        """
        self._tables.limit_caches()
        self._known = KnownKeys(self._tables, "videos", "video_id")
        names = expected_rows(self._vectors_table)
        self._new_rows = {name: NewRows(self._tables, name, self._known.hold) for name in names}

    def why_not_kept(
        self, row: VideoRow | None, lines: Sequence[LineLike] = (), frames: Sequence[FrameLike] = ()
    ) -> str | None:
        """Say which of these values no table can hold, before any is written; None where all can be kept.

        One video with such a value would else end the whole run.
        """
        for frame in frames:
            if not 0 <= frame.frame_no <= LAST_FRAME_NO:
                return f"frame number {frame.frame_no} is above {LAST_FRAME_NO}, the last that a library keeps"
            if not np.isfinite(frame.vector).all():
                return f"the model made a vector that holds no numbers of the frame at {frame.time_s:.3f} s"
        try:
            if row is not None:
                pa.Table.from_pylist([asdict(row)], schema=self._tables.schema("videos"))
            pa.array([line.text for line in lines], pa.string())
        except (ValueError, OverflowError) as error:
            return f"a value of it cannot be written: {error}"
        return None

    def add_frames(self, videos: Mapping[str, Sequence[FrameLike]]) -> dict[str, Counter[str]]:
        """Append frames and their vectors by video id, in one commit a table. Few large ones are faster than many.

        Returns the digests of these rows by table and video, for `complete`. Raises ValueError for vectors of another
        dimension than the library's space.
        """
        rows = [row for frames in videos.values() for row in frames]
        if not rows:
            return {}
        schema = self._tables.schema(self._vectors_table)
        vectors = _matrix(rows, schema.field("vector").type.list_size)
        video_ids = [video_id for video_id, frames in videos.items() for _ in frames]
        ids = pa.array(video_ids, pa.string())
        numbers = pa.array([row.frame_no for row in rows], pa.int32())
        times = pa.array([row.time_s for row in rows], pa.float64())
        keys = [frame_keys(video_id, [row.frame_no for row in frames]) for video_id, frames in videos.items()]
        pictures = [
            ids,
            numbers,
            pa.array(np.concatenate(keys), pa.int64()),
            times,
            pa.array([row.width_px for row in rows], pa.int32()),
            pa.array([row.height_px for row in rows], pa.int32()),
            pa.array([row.jpeg for row in rows], pa.binary()),
        ]
        frames_schema = self._tables.schema("frames")
        if CHECKSUM in frames_schema.names:  # libraries that were made before there was one stay without
            pictures.append(pa.array([zlib.crc32(row.jpeg) for row in rows], pa.uint32()))
        written = {
            "frames": pa.Table.from_arrays(pictures, schema=frames_schema),
            self._vectors_table: pa.Table.from_arrays([ids, numbers, times, vectors], schema=schema),
        }
        for name, table in written.items():
            self._tables.append(name, table)
        return {name: digests_by_video(table) for name, table in written.items()}

    def add_segments(self, videos: Mapping[str, Iterable[SegmentLike]]) -> Counter[str]:
        """Append the segments of videos, all of each in order, by video id; returns their digests."""
        rows = [(video_id, number, s) for video_id, segments in videos.items() for number, s in enumerate(segments)]
        columns = [
            pa.array([video_id for video_id, _, _ in rows], pa.string()),
            pa.array([number for _, number, _ in rows], pa.int32()),
            pa.array([segment.start_s for _, _, segment in rows], pa.float64()),
            pa.array([segment.end_s for _, _, segment in rows], pa.float64()),
            pa.array([segment.kind for _, _, segment in rows], pa.string()),
        ]
        table = pa.Table.from_arrays(columns, schema=self._tables.schema("segments"))
        self._tables.append("segments", table)
        return digests_by_video(table)

    def add_transcript(self, videos: Mapping[str, Iterable[LineLike]]) -> Counter[str]:
        """Append the transcript lines of videos by video id; returns their digests."""
        rows = [
            TranscriptRow(video_id, line.start_s, line.end_s, line.text, line.source, line.language, line.speaker)
            for video_id, lines in videos.items()
            for line in lines
        ]
        schema = self._tables.schema("transcript")
        table = pa.Table.from_pylist([asdict(row) | {"words": None} for row in rows], schema=schema)
        self._tables.append("transcript", table)
        return digests_by_video(table)

    def complete(
        self,
        rows: Sequence[VideoRow],
        check: Callable[[], None] = lambda: None,
        digests: Digests | None = None,
    ) -> tuple[str, ...]:
        """Make videos visible to readers: the last thing written of them, after everything else is on the disk.

        `check` is called right before that, and may raise an error, as that of a lease does. `digests` are those that
        writing the rows returned; without them the rows are read again.

        Returns the ids of rejected videos, which do not have exactly the frames, vectors, segments and lines that
        their row promises: two runs wrote them at once, and all their rows are deleted.
        """
        if not rows:
            return ()
        rejected = self._incomplete(rows)
        self.discard(*rejected)
        accepted = [_stored(row) for row in rows if row.video_id not in rejected]
        self._add_digests(accepted, digests)
        if accepted and is_local(self._tables.uri):
            os.sync()  # Lance never does: after a power cut a row could else outlive the rows that it promises
        check()
        if self._known is None:
            self._tables.upsert("videos", ["video_id"], accepted)
        else:
            self._known.write(accepted)
        for new_rows in self._new_rows.values():
            new_rows.forget(row.video_id for row in rows)
        return rejected

    def _add_digests(self, rows: Sequence[dict[str, Any]], digests: Digests | None) -> None:
        """Add the digests of each video to its row, where the library has a column for them."""
        schema = self._tables.schema("videos")
        if not rows or VIDEO_DIGESTS not in schema.names:
            return
        names = expected_rows(self._vectors_table)
        of_videos = one_of("video_id", [row["video_id"] for row in rows])
        known = {
            name: read_digests(self._tables, name, [of_videos, *ingested_only(name)])
            if digests is None
            else digests.get(name, {})
            for name in names
        }
        table = pa.Table.from_pylist(list(rows), schema=schema)
        for number, row in enumerate(rows):
            row[VIDEO_DIGESTS] = video_digests(table.slice(number, 1), known)

    def _incomplete(self, rows: Sequence[VideoRow]) -> tuple[str, ...]:
        """List the videos that do not have exactly the rows that they should.

        What the new rows alone do not show to be complete is counted in the whole tables.
        """
        ids = [row.video_id for row in rows]
        if self._new_rows:
            held = {name: new_rows.counts(ids) for name, new_rows in self._new_rows.items()}
            rows = [row for row in rows if not is_complete(row, held, self._vectors_table)]
        if not rows:
            return ()
        held = counts_of(self._tables, self._vectors_table, [row.video_id for row in rows])
        return tuple(row.video_id for row in rows if not is_complete(row, held, self._vectors_table))

    def discard(self, *video_ids: str) -> None:
        """Delete all rows of videos, complete or left over, and all that was added to them.

        The row in `videos` goes before the rest, so that nobody sees that; and what the log says of sources before it,
        or rows of a deletion that was interrupted would look like those of a video whose row was lost.
        """
        tables = self._tables
        for ids in chunked(video_ids):
            for name in (
                *("sources", "videos", "frames", self._vectors_table, "segments", "additions"),
                *present(tables, ("clips", *STAGE_TABLES.values())),
                *space_tables(tables),
                *space_tables(tables, SENTENCES_PREFIX),
            ):
                tables.delete(name, one_of("video_id", ids))

    def discard_frames(self, video_id: str, first_no: int, until_no: int | None) -> None:
        """Delete a video's frames and vectors numbered `[first_no, until_no)`; None: all from the first on."""
        where = equal("video_id", video_id) & at_least("frame_no", first_no)
        where = where if until_no is None else where & below("frame_no", until_no)
        for name in ("frames", self._vectors_table):
            self._tables.delete(name, where)


def _stored(row: VideoRow) -> dict[str, Any]:
    values = moved(asdict(row) | {"uri": redact_uri(row.uri)}, row.zero_s)
    del values["zero_s"]
    return values


def _matrix(rows: Sequence[FrameLike], dim: int) -> pa.FixedSizeListArray:
    vectors = np.stack([row.vector for row in rows]).astype(np.float16)
    if vectors.shape[1] != dim:
        raise ValueError(f"vectors have {vectors.shape[1]} numbers, the space has {dim}")
    return pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), dim)
