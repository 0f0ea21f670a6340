"""Writing of videos: their rows, the row that makes them visible, and the notes of an ingest for the next one.

The notes are the sources that were read, those that failed, and the report of each run. Addresses are written without
what grants access to them, and are the same with other credentials.
"""

from __future__ import annotations

import json
import os
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kinodex.index.errors import read_object
from kinodex.index.languages import language_tag
from kinodex.index.rows import (
    AddedSource,
    FailureRow,
    RunRow,
    SourceRow,
    VideoRow,
    known,
)
from kinodex.index.store.database import Tables, is_local, own_tables
from kinodex.index.store.indexes import ensure_table, present
from kinodex.index.store.schema import (
    CHECKSUM,
    FRAME_NO_BITS,
    LAST_FRAME_NO,
    OWN_ROW,
    OWN_STAGES,
    SHARED_STAGES,
    VIDEO_DIGESTS,
    Digests,
    Filter,
    all_of,
    as_text,
    at_least,
    below,
    chunked,
    digests_by_video,
    equal,
    frame_keys,
    one_of,
    other_than,
    own_hashes,
    read_digests,
    row_hashes,
)
from kinodex.index.text import composed, redact, redact_uri, redact_values

if TYPE_CHECKING:
    from lance import LanceDataset, LanceFragment


class IngestLog:
    """Sources, failures and runs of a library."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._known: KnownKeys | None = None
        self._failed: KnownKeys | None = None

    def note_sources(self) -> None:
        """Take note of all sources and failures, for a run that alone records sources: it then clears what it knows."""
        self._known = KnownKeys(self._tables, "sources", "uri")
        self._failed = KnownKeys(self._tables, "failures", "uri")

    def sources(self) -> dict[str, SourceRow]:
        """Read every source that an ingest found a video in, by URI."""
        return {
            row["uri"]: known(SourceRow, row) for batch in self._tables.batches("sources") for row in batch.to_pylist()
        }

    def sources_with(self, column: str, values: Sequence[str]) -> list[SourceRow]:
        """Read the sources with one of these values in a column: `uri`, or `video_id`."""
        tables = [self._tables.rows("sources", one_of(column, some)) for some in chunked(values)]
        return [known(SourceRow, row) for table in tables for row in table.to_pylist()]

    def places(self, video: VideoRow) -> list[SourceRow]:
        """Read the places where ingests found a video: first its address, then copies by URI.

        An address that holds another video by now comes last; one of which nothing is noted has no stamp.
        """
        of_address = one_of("uri", [video.uri, redact_uri(video.uri)])
        rows = self._tables.rows("sources", of_address | equal("video_id", video.video_id)).to_pylist()
        found = sorted(
            (known(SourceRow, row) for row in rows), key=lambda row: (row.uri != redact_uri(video.uri), row.uri)
        )
        if not found or redact_uri(found[0].uri) != redact_uri(video.uri):
            found.insert(0, SourceRow(video.uri, video.video_id, None, "", video.ingested_at))
        return sorted(found, key=lambda row: row.video_id != video.video_id)

    def forget_sources(self, uris: Sequence[str]) -> None:
        """Forget sources: the next ingest of one reads its bytes again."""
        for some in chunked(uris):
            self._tables.delete("sources", one_of("uri", some))

    def add_sources(self, rows: Iterable[SourceRow]) -> None:
        """Record sources, each in place of the earlier row of its URI; of several rows of one URI the last counts."""
        latest = {uri: asdict(row) | {"uri": uri} for row in rows for uri in [redact_uri(row.uri)]}
        if self._known is None:
            self._tables.upsert("sources", ["uri"], list(latest.values()))
        else:
            self._known.write(list(latest.values()))

    def failures(self) -> list[FailureRow]:
        """Read all failures, by URI and stage."""
        rows = [known(FailureRow, row) for row in self._tables.rows("failures").to_pylist()]
        return sorted(rows, key=lambda row: (row.uri, row.stage))

    def add_failures(self, rows: Sequence[FailureRow]) -> None:
        """Record failed sources; the same source and stage again, earlier or in `rows`, count as further attempts."""
        if not rows:
            return
        rows = [replace(row, uri=redact_uri(row.uri), message=redact(row.message)) for row in rows]
        if self._failed is not None:
            self._failed.add([row.uri for row in rows])
        where = one_of("uri", sorted({row.uri for row in rows}))
        before = self._tables.rows("failures", where, ["uri", "stage", "attempts"]).to_pylist()
        attempts = {(row["uri"], row["stage"]): row["attempts"] for row in before}
        counted = {}
        for row in rows:
            key = row.uri, row.stage
            attempts[key] = attempts.get(key, 0) + row.attempts
            counted[key] = asdict(replace(row, attempts=attempts[key]))
        self._tables.upsert("failures", ["uri", "stage"], list(counted.values()))

    def clear_failures(self, uris: Sequence[str], stages: Sequence[str] | None = None) -> None:
        """Forget the failures of sources, or only those of some stages."""
        uris = [redact_uri(uri) for uri in uris]
        if self._failed is not None:
            uris = [uri for uri, has_failed in zip(uris, self._failed.hold(uris), strict=True) if has_failed]
        if uris:
            of_sources = one_of("uri", uris)
            self._tables.delete("failures", of_sources if stages is None else of_sources & one_of("stage", stages))

    def runs(self) -> list[RunRow]:
        """Read the report of every run, the latest first."""
        rows = self._tables.rows("runs").to_pylist()
        what = f"the report of a run of {self._tables.uri}"
        loaded = [known(RunRow, row | {"report": read_object(row["report"], what)}) for row in rows]
        return sorted(loaded, key=lambda row: (row.started_at, row.run_id), reverse=True)

    def add_run(self, row: RunRow) -> None:
        """Record a run, in place of its earlier row."""
        report = json.dumps(redact_values(row.report), sort_keys=True)
        self._tables.upsert("runs", ["run_id"], [asdict(row) | {"report": report}])


# Write the rows of videos, and make them visible to readers last, once all are there.


FRAME_COLUMNS = ("frame_no", "time_s", "width_px", "height_px", "jpeg")
LINE_COLUMNS = ("start_s", "end_s", "text", "source", "language", "speaker")


class VideoWriter:
    """Everything that an ingest writes of videos. Rows come first, `complete` last; until then nobody sees them.

    Times are presentation times, as an ingest reads them from the file. A frame has `frame_no`, `time_s`, `width_px`,
    `height_px`, `jpeg` and its `vector`, a unit vector float16 `[dim]`; a segment `start_s`, `end_s` and `kind`; a line
    `start_s`, `end_s`, `text`, `source`, `language` and `speaker`.
    """

    def __init__(self, tables: Tables, vectors_table: str) -> None:
        self._tables = tables
        self._vectors_table = vectors_table
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

        Few large commits are faster than many. Raises ValueError for vectors of another dimension than the space.
        """
        rows = [row for frames in videos.values() for row in frames]
        if not rows:
            return {}
        schema = self._tables.schema(self._vectors_table)
        vectors = _matrix(rows, schema.field("vector").type.list_size)
        keys = [frame_keys(video_id, [row.frame_no for row in frames]) for video_id, frames in videos.items()]
        columns = {
            "video_id": [video_id for video_id, frames in videos.items() for _ in frames],
            **{name: [getattr(row, name) for row in rows] for name in FRAME_COLUMNS},
            "frame_key": np.concatenate(keys),
            CHECKSUM: [zlib.crc32(row.jpeg) for row in rows],
            "vector": vectors,
        }
        written = {name: _table(columns, self._tables.schema(name)) for name in ("frames", self._vectors_table)}
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

    def note_undrawn(self, video_ids: Sequence[str]) -> None:
        """Note films with vectors of the built-in space that kinodex did not draw: see `LibraryReader.noise`."""
        if video_ids:
            ensure_table(self._tables, "undrawn")
            self._tables.upsert("undrawn", ["video_id"], [{"video_id": each} for each in video_ids])

    def discard(self, *video_ids: str) -> None:
        """Delete all rows of videos, complete or left over, and all that was added to them.

        The row in `videos` goes before the rest, so that nobody sees that; and what the log says of sources before it,
        or rows of a deletion that was interrupted would look like those of a video whose row was lost.
        """
        tables = self._tables
        for ids in chunked(video_ids):
            for name in (
                *("sources", "videos", "frames", self._vectors_table, "segments", "additions"),
                *present(tables, ("notes", "undrawn", "metadata", *SHARED_STAGES)),
                *(table for stage in OWN_STAGES for table in own_tables(tables, stage).values()),
            ):
                tables.delete(name, one_of("video_id", ids))

    def discard_frames(self, video_id: str, first_no: int, until_no: int | None) -> None:
        """Delete a video's frames and vectors numbered `[first_no, until_no)`; None: all from the first on."""
        where = equal("video_id", video_id) & at_least("frame_no", first_no)
        where = where if until_no is None else where & below("frame_no", until_no)
        for name in ("frames", self._vectors_table):
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


# Rows written since a run began, counted by video: each fragment is read once, not the table for each commit.
#
# A table of Lance consists of fragments. An append adds some, and their numbers only grow; a deletion marks rows of
# fragments as deleted; a compaction or an update puts rows into new fragments. So a fragment whose number is new is
# read, one with more deleted rows than before is read again, and one that is gone no longer counts: what is held is
# then what the newest state of the table has in fragments that were written since the beginning. Rows written before it
# are not counted. So it has to begin before the leftovers of other runs are swept out.

JOINED_ROWS = 20_000
"""A fragment of more rows may come of a compaction, and hold rows of videos that were complete long ago."""
FRAGMENT_BITS = 32
"""A row's address: its fragment's number, then its place there."""

Numbers = dict[str, NDArray[np.int32]]
"""Numbers of the rows of one fragment, by video."""


@dataclass(slots=True)
class _Fragment:
    deletions: int
    videos: Numbers


class NewRows:
    """New rows of one table, but for those of videos that were forgotten or, says `are_complete`, complete."""

    def __init__(self, tables: Tables, name: str, are_complete: Callable[[Sequence[str]], Sequence[bool]]) -> None:
        self._tables = tables
        self._name = name
        self._are_complete = are_complete
        self._next = _next_number(tables[name])
        self._fragments: dict[int, _Fragment] = {}

    def counts(self, video_ids: Sequence[str]) -> Counts:
        """Count the new rows of these videos in the newest state of the table."""
        self._look()
        held = {video_id: self._numbers(video_id) for video_id in video_ids}
        rows = {video_id: len(numbers) for video_id, numbers in held.items()}
        if len(key_columns(self._name)) == 1:
            return Counts(rows, rows)
        return Counts(rows, {video_id: len(np.unique(numbers)) for video_id, numbers in held.items()})

    def forget(self, video_ids: Iterable[str]) -> None:
        """Drop what is held of videos that are complete."""
        gone = set(video_ids)
        for number, fragment in list(self._fragments.items()):
            for video_id in gone & fragment.videos.keys():
                del fragment.videos[video_id]
            if not fragment.videos:
                del self._fragments[number]

    def _numbers(self, video_id: str) -> NDArray[np.int32]:
        found = [fragment.videos[video_id] for fragment in self._fragments.values() if video_id in fragment.videos]
        return np.concatenate(found) if found else np.empty(0, np.int32)

    def _look(self) -> None:
        """Bring what is held up to the newest state of the table."""
        table = self._tables[self._name]
        numbers = set(table.fragment_ids())  # thousands: only those that are new or held are looked at
        held_still = {number: held for number, held in self._fragments.items() if number in numbers}
        held_now = {number: _fragment(table, number) for number in held_still}
        changed = [held_now[n] for n, held in held_still.items() if held_now[n].num_deletions != held.deletions]
        new = [_fragment(table, number) for number in sorted(numbers) if number >= self._next]
        found = self._read(table, [*new, *changed])
        self._fragments = held_still
        for fragment in changed:  # deleting adds no row: what was forgotten of it stays so
            held = self._fragments.pop(fragment.fragment_id)
            rows_of = found.get(fragment.fragment_id, {})
            self._hold(fragment, {id_: rows for id_, rows in rows_of.items() if id_ in held.videos})
        for fragment in new:
            rows_of = found.get(fragment.fragment_id, {})
            self._hold(fragment, self._incomplete(rows_of) if fragment.physical_rows > JOINED_ROWS else rows_of)
        self._next = max(self._next, _next_number(table))  # that of a fragment which is gone is not used again

    def _hold(self, fragment: LanceFragment, videos: Numbers) -> None:
        if videos:
            self._fragments[fragment.fragment_id] = _Fragment(fragment.num_deletions, videos)

    def _read(self, table: LanceDataset, fragments: Sequence[LanceFragment]) -> dict[int, Numbers]:
        """Read the numbers of the rows of these fragments, by fragment and video."""
        if not fragments:
            return {}
        where = all_of(ingested_only(self._name))
        columns = key_columns(self._name)
        sql = None if where is None else where.sql
        scanner = table.scanner(columns, sql, fragments=list(fragments), with_row_address=True)
        return _by_fragment(scanner.to_table(), columns)

    def _incomplete(self, videos: Numbers) -> Numbers:
        """Leave out the videos that are complete."""
        ids = list(videos)
        complete = self._are_complete(ids)
        return {id_: videos[id_].copy() for id_, is_there in zip(ids, complete, strict=True) if not is_there}


def _fragment(table: LanceDataset, number: int) -> LanceFragment:
    """Look up a fragment that the table has."""
    fragment = table.get_fragment(number)
    assert fragment is not None
    return fragment


def _next_number(table: LanceDataset) -> int:
    """Return a number above those of all fragments that the table has now."""
    return max(table.fragment_ids(), default=-1) + 1


def _by_fragment(rows: pa.Table, columns: Sequence[str]) -> dict[int, Numbers]:
    """Split rows by fragment and video. They lie in runs, as they were written."""
    if not rows.num_rows:
        return {}
    fragments = rows["_rowaddr"].to_numpy() >> np.uint64(FRAGMENT_BITS)
    ids = rows["video_id"].combine_chunks().dictionary_encode()
    places = ids.indices.to_numpy()
    names = ids.dictionary.to_pylist()
    numbers = rows[columns[1]].to_numpy() if len(columns) > 1 else np.zeros(rows.num_rows, np.int32)
    starts = np.flatnonzero((np.diff(fragments) != 0) | (np.diff(places) != 0)) + 1
    found: dict[int, Numbers] = {}
    for first, run in zip([0, *starts.tolist()], np.split(numbers, starts), strict=True):
        videos = found.setdefault(int(fragments[first]), {})
        video_id = names[places[first]]
        videos[video_id] = np.concatenate([videos[video_id], run]) if video_id in videos else run
    return found


# Rows written by key into a table that one process alone writes, without a look at the table.
#
# To find the rows that an upsert replaces, Lance joins with all rows that no index covers yet, and reads again what is
# new of the index: beside a run that writes 500 rows a commit that took twice as long after 100,000 rows, half of the
# commit. But nearly all keys of a run are new, and it can know that: it remembers all that were there, as 64-bit
# hashes, and those that it wrote. Rows of new keys are appended; the few others, among them one key in 2**64 that only
# looks known, are upserted.

MERGE_FROM = 100_000
"""Hashes that wait to be sorted in among the others."""


class KnownKeys:
    """Keys of a table, in 8 bytes each. Nobody else may write new ones as long as this is in use."""

    def __init__(self, tables: Tables, name: str, key: str) -> None:
        self._tables, self._name, self._key = tables, name, key
        parts = [_hashes(batch.column(key).to_pylist()) for batch in tables.batches(name, None, [key])]
        self._sorted = np.unique(np.concatenate(parts)) if parts else np.empty(0, np.int64)
        self._new: set[int] = set()

    def write(self, rows: Sequence[dict[str, Any]]) -> None:
        """Write rows with keys that differ, each in place of the one with the same key."""
        hashes = _hashes([row[self._key] for row in rows])
        held = self._hold(hashes)
        self._tables.append(self._name, [row for row, is_held in zip(rows, held, strict=True) if not is_held])
        self._tables.upsert(self._name, [self._key], [row for row, is_held in zip(rows, held, strict=True) if is_held])
        self._add(hashes)

    def add(self, keys: Sequence[str]) -> None:
        """Take note of keys that are written otherwise."""
        self._add(_hashes(keys))

    def hold(self, keys: Sequence[str]) -> list[bool]:
        """Say for each key if there was a row of it or one was written; of a new one that is wrong once in 2**64."""
        return self._hold(_hashes(keys))

    def _hold(self, hashes: NDArray[np.int64]) -> list[bool]:
        known = self._is_sorted_in(hashes).tolist()
        return [found or each in self._new for found, each in zip(known, hashes.tolist(), strict=True)]

    def _is_sorted_in(self, hashes: NDArray[np.int64]) -> NDArray[np.bool_]:
        if not len(self._sorted):
            return np.zeros(len(hashes), np.bool_)
        positions = np.minimum(np.searchsorted(self._sorted, hashes), len(self._sorted) - 1)
        return np.asarray(self._sorted[positions] == hashes)

    def _add(self, hashes: NDArray[np.int64]) -> None:
        self._new.update(hashes.tolist())
        if len(self._new) >= MERGE_FROM:
            new = np.sort(np.fromiter(self._new, np.int64, len(self._new)))
            new = new[~self._is_sorted_in(new)]
            self._sorted = np.insert(self._sorted, np.searchsorted(self._sorted, new), new)
            self._new = set()


def _hashes(keys: Iterable[str]) -> NDArray[np.int64]:
    """Hash keys as this process does; another one hashes them otherwise."""
    return np.array([hash(key) for key in keys], np.int64)


# Count the rows of videos in the tables that ingest fills, by one scan of ids and numbers: for checks only.


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
    return {"frames": "frames", vectors_table: "frames", "segments": "segments", "speech": "speech_lines"}


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
