"""Writing of videos: their rows, and last the row that makes them visible to readers."""

from __future__ import annotations

import json
import os
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pyarrow as pa

from kinodex.index.languages import language_tag
from kinodex.index.rows import VideoRow
from kinodex.index.store.database import Tables
from kinodex.index.store.digests import OWN_ROW, Digests, as_text, digests_by_video, own_hashes, row_hashes
from kinodex.index.store.filters import at_least, below, chunked, equal, one_of
from kinodex.index.store.frame_keys import LAST_FRAME_NO, frame_keys
from kinodex.index.store.held_tables import own_tables, present
from kinodex.index.store.places import is_local
from kinodex.index.store.schema import CHECKSUM, OWN_STAGES, SHARED_STAGES, VIDEO_DIGESTS
from kinodex.index.store.stored_digests import read_digests
from kinodex.index.text import composed
from kinodex.index.videos.known_keys import KnownKeys
from kinodex.index.videos.new_rows import NewRows
from kinodex.index.videos.row_counts import counts_of, expected_rows, ingested_only, is_complete
from kinodex.redaction import redact_uri

FRAME_COLUMNS = ("frame_no", "time_s", "width_px", "height_px", "jpeg")
LINE_COLUMNS = ("start_s", "end_s", "text", "source", "language", "speaker")


class VideoWriter:
    """Everything that an ingest writes of videos. Rows come first, `complete` last; until then nobody sees them.

    Times are presentation times, as an ingest reads them from the file. A frame has `frame_no`, `time_s`, `width_px`,
    `height_px`, `jpeg` and its `vector`, a unit vector float16 `[dim]`; a segment `start_s`, `end_s` and `kind`; a line
    `start_s`, `end_s`, `text`, `source`, `language` and `speaker`.
    """

    def __init__(self, tables: Tables, vectors_table: str | None) -> None:
        self._tables = tables
        self._vectors_table = vectors_table
        self._frame_tables = ("frames", *([] if vectors_table is None else [vectors_table]))
        self._new_rows: dict[str, NewRows] = {}
        self._known: KnownKeys | None = None

    def note_rows(self) -> None:
        """Take note of the rows that are there, for a run that alone completes videos: `complete` need not look."""
        self._tables.limit_caches()
        self._known = KnownKeys(self._tables, "videos", "video_id")
        names = expected_rows(self._vectors_table)
        self._new_rows = {name: NewRows(self._tables, name, self._known.hold) for name in names}

    def why_not_kept(self, row: VideoRow | None, lines: Sequence[Any] = (), frames: Sequence[Any] = ()) -> str | None:
        """Say which of these values no table can hold: one video with such a value would else end the whole run."""
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

    def add_frames(self, videos: Mapping[str, Sequence[Any]]) -> dict[str, Counter[str]]:
        """Append frames and their vectors by video id, in one commit a table; returns their digests by table and video.

        Vectors are not kept in a library without a space. Few large commits are faster than many. Raises ValueError for
        vectors of another dimension than the space.
        """
        rows = [row for frames in videos.values() for row in frames]
        if not rows:
            return {}
        keys = [frame_keys(video_id, [row.frame_no for row in frames]) for video_id, frames in videos.items()]
        columns = {
            "video_id": [video_id for video_id, frames in videos.items() for _ in frames],
            **{name: [getattr(row, name) for row in rows] for name in FRAME_COLUMNS},
            "frame_key": np.concatenate(keys),
            CHECKSUM: [zlib.crc32(row.jpeg) for row in rows],
        }
        if self._vectors_table is not None:
            schema = self._tables.schema(self._vectors_table)
            columns["vector"] = _matrix(rows, schema.field("vector").type.list_size)
        written = {name: _table(columns, self._tables.schema(name)) for name in self._frame_tables}
        return {name: digests_by_video(self._tables.append(name, table)) for name, table in written.items()}

    def add_segments(self, videos: Mapping[str, Iterable[Any]], first_no: int = 0) -> Counter[str]:
        """Append the segments of videos, in order and numbered from `first_no`, by video id; returns their digests."""
        rows = [
            (video_id, number, segment)
            for video_id, segments in videos.items()
            for number, segment in enumerate(segments, first_no)
        ]
        columns = {
            "video_id": [video_id for video_id, _, _ in rows],
            "segment_no": [number for _, number, _ in rows],
            **{name: [getattr(segment, name) for _, _, segment in rows] for name in ("start_s", "end_s", "kind")},
        }
        return self._append("segments", columns)

    def add_speech(self, videos: Mapping[str, Iterable[Any]]) -> Counter[str]:
        """Append the transcript lines of videos by video id; returns their digests."""
        rows = [(video_id, line) for video_id, lines in videos.items() for line in lines]
        nothing = [None] * len(rows)
        columns = {
            "video_id": [video_id for video_id, _ in rows],
            **{name: [getattr(line, name) for _, line in rows] for name in LINE_COLUMNS},
            "language": [language_tag(line.language) for _, line in rows],
            "model": nothing,
            "words": nothing,
        }
        return self._append("speech", columns)

    def _append(self, name: str, columns: Mapping[str, Any]) -> Counter[str]:
        return digests_by_video(self._tables.append(name, _table(columns, self._tables.schema(name))))

    def complete(
        self,
        rows: Sequence[VideoRow],
        check: Callable[[], None] = lambda: None,
        digests: Digests | None = None,
    ) -> tuple[str, ...]:
        """Make videos visible to readers: the last thing written of them, after everything else is on the disk.

        `check` is called right before that, and may raise. `digests` are those that writing the rows returned; without
        them the rows are read again. Returns the ids of rejected videos, whose rows are deleted: two runs wrote them at
        once, so that they do not have exactly the frames, vectors, segments and lines that their row promises.
        """
        if not rows:
            return ()
        rejected = self._incomplete(rows)
        self.discard(*rejected)
        self.show([row for row in rows if row.video_id not in rejected], check, digests)
        for new_rows in self._new_rows.values():
            new_rows.forget(row.video_id for row in rows)
        return rejected

    def show(self, rows: Sequence[VideoRow], check: Callable[[], None], digests: Digests | None = None) -> None:
        """Write the rows of videos by which readers see them, or more of those that grow; see `complete`."""
        accepted = [_stored(row) for row in rows]
        self._add_digests(accepted, digests)
        if accepted and is_local(self._tables.uri):
            os.sync()  # Lance never does: after a power cut a row could else outlive the rows that it promises
        check()
        if self._known is None:
            self._tables.upsert("videos", ["video_id"], accepted)
        else:
            self._known.write(accepted)

    def readdress(self, addresses: Mapping[str, tuple[str, str]], check: Callable[[], None] = lambda: None) -> None:
        """Give complete videos, by id, another URI and title, all in one commit; `check` as `complete` has it.

        The digest of a row that is as it was written follows; that of an altered one still shows it.
        """
        schema, parts = self._tables.schema("videos"), []
        for ids in chunked(sorted(addresses)):
            before = self._tables.rows("videos", one_of("video_id", ids), schema.names)
            rows = before.to_pylist()
            for row in rows:
                uri, title = addresses[row["video_id"]]
                row |= {"uri": redact_uri(uri), "title": composed(title)}
            after = pa.Table.from_pylist(rows, schema)
            texts = map(_own_digest, rows, own_hashes(schema, before), own_hashes(schema, after))
            column = pa.array(texts, schema.field(VIDEO_DIGESTS).type)
            place = schema.get_field_index(VIDEO_DIGESTS)
            parts.append(after.set_column(place, schema.field(VIDEO_DIGESTS), column))
        if parts:
            check()
            self._tables.upsert("videos", ["video_id"], pa.concat_tables(parts))

    def _add_digests(self, rows: Sequence[dict[str, Any]], digests: Digests | None) -> None:
        """Add the digests of each video to its row."""
        schema = self._tables.schema("videos")
        if not rows:
            return
        names = expected_rows(self._vectors_table)
        of_videos = one_of("video_id", [row["video_id"] for row in rows])
        known: dict[str, Mapping[str, int]] = {name: (digests or {}).get(name, {}) for name in names}
        if digests is None:
            known = {name: read_digests(self._tables, name, [of_videos, *ingested_only(name)]) for name in names}
        table = pa.Table.from_pylist(list(rows), schema=schema)
        for number, row in enumerate(rows):
            own = {OWN_ROW: as_text(sum(row_hashes(table.slice(number, 1))))}
            of_tables = {name: as_text(of_video.get(row["video_id"], 0)) for name, of_video in known.items()}
            row[VIDEO_DIGESTS] = json.dumps(of_tables | own)

    def _incomplete(self, rows: Sequence[VideoRow]) -> tuple[str, ...]:
        """List the videos that do not have exactly their rows, by the new rows first, then by the whole tables."""
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
                *("sources", "videos", *self._frame_tables, "segments", "additions"),
                *present(tables, ("notes", "metadata", *SHARED_STAGES)),
                *(table for stage in OWN_STAGES for table in own_tables(tables, stage).values()),
            ):
                tables.delete(name, one_of("video_id", ids))

    def discard_frames(self, video_id: str, first_no: int, until_no: int | None) -> None:
        """Delete a video's frames and vectors numbered `[first_no, until_no)`; None: all from the first on."""
        where = equal("video_id", video_id) & at_least("frame_no", first_no)
        where = where if until_no is None else where & below("frame_no", until_no)
        for name in self._frame_tables:
            self._tables.delete(name, where)


def _own_digest(row: Mapping[str, Any], before: int, after: int) -> str | None:
    """Write a row's digests with another hash of the row itself, if the one before is that of the row."""
    text: str | None = row[VIDEO_DIGESTS]
    was, now = (json.dumps({OWN_ROW: as_text(each)})[1:] for each in (before, after))
    return text and text.replace(was, now)


def _stored(row: VideoRow) -> dict[str, Any]:
    return asdict(row) | {"uri": redact_uri(row.uri), "title": composed(row.title)}


def _table(columns: Mapping[str, Any], schema: pa.Schema) -> pa.Table:
    """Make a table of those columns that the schema has; one that a later kinodex added is null."""
    nothing = [None] * len(columns["video_id"])
    return pa.Table.from_pydict({name: columns.get(name, nothing) for name in schema.names}, schema)


def _matrix(rows: Sequence[Any], dim: int) -> pa.FixedSizeListArray:
    vectors = np.stack([row.vector for row in rows]).astype(np.float16)
    if vectors.shape[1] != dim:
        raise ValueError(f"vectors have {vectors.shape[1]} numbers, the space has {dim}")
    return pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), dim)
