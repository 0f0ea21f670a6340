"""Rows of videos that are written come back, are counted by video, and a video is complete with exactly its rows."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kinodex.index.errors import LeaseLost
from kinodex.index.library import Library
from kinodex.index.rows import FailureRow, RunRow, SegmentRow, SourceRow
from kinodex.index.store.database import Tables
from kinodex.index.store.digests import as_text, digests_by_video, row_hashes
from kinodex.index.store.indexes import AFTER_RUN, optimize
from kinodex.index.sweep import audit
from kinodex.index.videos.known_keys import MERGE_FROM, KnownKeys
from kinodex.index.videos.new_rows import JOINED_ROWS, NewRows
from kinodex.index.videos.row_counts import Counts, count_rows, rows_by_video
from kinodex.pipeline.sample import FrameRow
from tests.support.libraries.random_library import DIM, WHEN, MadeVideo, made, spoken, write


def test_what_is_written_comes_back(library):
    video = made("a1b2c3d4", 30, seed=1, start_s=2.5, lines=((3.0, 4.0, "a dog barks"), (9.0, 11.0, "it stops")))
    library.writer.add_frames({video.video_id: video.frame_rows()[:20]})
    library.writer.add_frames({video.video_id: video.frame_rows()[20:]})
    segments = [SegmentRow("", 0, 2.5, 12.0, "shot"), SegmentRow("", 0, 12.0, 32.5, "window")]
    library.writer.add_segments({video.video_id: segments})
    library.writer.add_speech({video.video_id: video.speech()})
    assert library.writer.complete([replace(video.video_row(), segments=2)]) == ()

    again = Library.open(library.uri)
    assert again.videos() == [replace(video.video_row(), segments=2)]
    stored = again.vectors(video.video_id)
    np.testing.assert_array_equal(stored.vectors, video.vectors)
    assert stored.vectors.dtype == np.float16
    np.testing.assert_array_equal(stored.time_s, video.times_s)
    np.testing.assert_array_equal(stored.frame_no, np.arange(30))
    frames = again.frames(video.video_id, [7, 3, 29])
    assert [(f.frame_no, f.time_s, f.jpeg) for f in frames] == [
        (7, 9.5, b"jpeg a1b2c3d4 7"),
        (3, 5.5, b"jpeg a1b2c3d4 3"),
        (29, 31.5, b"jpeg a1b2c3d4 29"),
    ]
    assert [(s.segment_no, s.start_s, s.end_s, s.kind) for s in again.segments(video.video_id)] == [
        (0, 2.5, 12.0, "shot"),
        (1, 12.0, 32.5, "window"),
    ]
    assert again.speech(video.video_id) == video.speech()
    assert [line.text for line in again.speech(video.video_id, 4.0, 9.0)] == []
    assert [line.text for line in again.speech(video.video_id, 3.9, 9.1)] == ["a dog barks", "it stops"]
    assert [line.text for line in again.speech(video.video_id, start_s=5.0)] == ["it stops"]


def test_two_runs_on_one_video_are_noticed(library):
    video, other = made("aaaa", 5, seed=1), made("bbbb", 5, seed=2)
    write(library, video, complete=False)
    write(library, video, complete=False)
    write(library, other, complete=False)
    assert library.writer.complete([video.video_row(), other.video_row()]) == ("aaaa",)
    assert library.video_ids() == {"bbbb"}
    assert [row.video_id for row in library.videos()] == ["bbbb"]
    assert audit(library).problems == ()
    write(library, video)
    assert len(library.vectors("aaaa").frame_no) == 5


def test_a_video_is_complete_with_exactly_its_rows(library):
    video = made("aaaa", 5, seed=1, lines=((0.0, 1.0, "hello"),))
    segments = [SegmentRow("", 0, 0.0, 5.0, "shot")]
    row = replace(video.video_row(), segments=1)
    for wrong in (
        replace(row, frames=6),
        replace(row, segments=0),
        replace(row, segments=2),
        replace(row, speech_lines=0),
    ):
        write(library, video, complete=False)
        library.writer.add_segments({"aaaa": segments})
        assert library.writer.complete([wrong]) == ("aaaa",)
    rows = video.frame_rows()
    library.writer.add_frames({"aaaa": [*rows[:4], rows[0]]})  # five rows, though not those five
    assert library.writer.complete([replace(video.video_row(), speech_lines=0)]) == ("aaaa",)
    assert library.writer.complete([]) == ()
    assert library.videos() == []
    assert audit(library).problems == ()


def test_a_range_of_frames_is_taken_out(library):
    video = made("aaaa", 10, seed=1)
    library.writer.add_frames({"aaaa": video.frame_rows(), "bbbb": video.frame_rows()})
    library.writer.discard_frames("aaaa", 3, 5)
    library.writer.discard_frames("aaaa", 8, None)
    assert (
        library.writer.complete([replace(video.video_row(), frames=6), replace(video.video_row(), video_id="bbbb")])
        == ()
    )
    assert library.vectors("aaaa").frame_no.tolist() == [0, 1, 2, 5, 6, 7]
    assert [frame.frame_no for frame in library.frames_at("aaaa", [4.4, 9.0])] == [5, 7]


def test_a_run_that_may_not_show_videos_any_more_shows_none(library: Library) -> None:
    """The check is the last thing before the rows, for whatever comes before it may take long."""
    library.writer.note_rows()
    video = made("aaaa", 2, seed=1)
    write(library, video, complete=False)
    write(Library.open(library.uri), video, complete=False)  # by a worker of a run that had lost the lease
    assert library.writer.complete([video.video_row()]) == ("aaaa",)
    write(library, video, complete=False)

    def check() -> None:
        raise LeaseLost("taken over")

    with pytest.raises(LeaseLost):
        library.writer.complete([video.video_row()], check)
    assert library.video_ids() == set()
    assert library.writer.complete([video.video_row()]) == ()
    assert library.video_ids() == {"aaaa"}
    library.writer.complete([video.video_row(title="renamed")])
    assert [row.title for row in library.videos()] == ["renamed"], "its row is replaced"
    with pytest.raises(ValueError, match="33"):
        library.writer.add_frames({"aaaa": [FrameRow(0, 0.0, 1, 1, b"", np.ones(DIM + 1, np.float16))]})


# Sources, failures and runs are recorded for the next run.


@pytest.mark.parametrize("noted", [False, True])
def test_failures_count_attempts_and_clear(library, noted):
    if noted:
        library.ingest_log.note_sources()
    failure = FailureRow("/films/it's.mp4", "open", "NotAVideo", "no video in it", 1, WHEN)
    library.ingest_log.add_failures([failure])
    again = replace(failure, message="still none")
    library.ingest_log.add_failures(
        [again, replace(failure, stage="subtitles"), replace(failure, uri="/films/other.mp4")]
    )
    assert [(row.uri, row.stage, row.attempts, row.message) for row in library.ingest_log.failures()] == [
        ("/films/it's.mp4", "open", 2, "still none"),
        ("/films/it's.mp4", "subtitles", 1, "no video in it"),
        ("/films/other.mp4", "open", 1, "no video in it"),
    ]
    library.ingest_log.add_failures([failure, failure])
    assert library.ingest_log.failures()[0].attempts == 4
    library.ingest_log.clear_failures(["/films/it's.mp4", "/films/other.mp4"], ["open", "decode"])
    assert [(row.uri, row.stage) for row in library.ingest_log.failures()] == [("/films/it's.mp4", "subtitles")]
    library.ingest_log.clear_failures(["/films/it's.mp4"])
    library.ingest_log.clear_failures([])
    library.ingest_log.add_failures([])
    assert library.ingest_log.failures() == []
    library.ingest_log.add_failures([replace(failure, uri="https://me:secret@host/a.mp4")])
    library.ingest_log.note_sources()
    library.ingest_log.clear_failures(["https://you:other@host/a.mp4", "/films/new.mp4"])
    assert library.ingest_log.failures() == [], "those that were there before the run"


# Rows by key: those of new keys are appended, which no table makes slower; others take the place of the old ones.

SCHEMA = pa.schema([("key", pa.string()), ("value", pa.int32())])


def rows_of(tables: Tables) -> list[dict[str, Any]]:
    return sorted(tables.rows("pairs").to_pylist(), key=lambda row: row["key"])


@pytest.mark.slow
def test_each_key_has_the_last_row_that_was_written_of_it(library: Library) -> None:
    tables, chance = library.tables, random.Random(0)
    tables.create("pairs", SCHEMA)
    expected = {str(number): number for number in range(40)}
    tables.append("pairs", [{"key": key, "value": value} for key, value in expected.items()])
    known = KnownKeys(tables, "pairs", "key")
    for _ in range(12):
        batch = {str(chance.randrange(120)): chance.randrange(1000) for _ in range(10)}
        known.write([{"key": key, "value": value} for key, value in batch.items()])
        expected |= batch
    assert rows_of(tables) == [{"key": key, "value": value} for key, value in sorted(expected.items())]
    for first in (1000, 1000 + MERGE_FROM):
        known.write([{"key": str(number), "value": 0} for number in range(first, first + MERGE_FROM)])
    known.write([{"key": str(number), "value": 1} for number in (1000, 999 + MERGE_FROM, 999 + 2 * MERGE_FROM)])
    assert tables.count("pairs") == len(expected) + 2 * MERGE_FROM
    assert sum(row["value"] for row in rows_of(tables)) == sum(expected.values()) + 3


# New rows are counted as the whole table would be, whatever adds, deletes, doubles or joins them meanwhile.


class CountingTables(Tables):
    """Tables that note which were read whole."""

    def __init__(self, uri: str) -> None:
        super().__init__(uri)
        self.scans: list[str] = []

    def batches(self, name: str, *args: Any, **options: Any) -> Iterator[Any]:
        self.scans.append(name)
        return super().batches(name, *args, **options)

    def rows(self, name: str, *args: Any, **options: Any) -> Any:
        self.scans.append(name)
        return super().rows(name, *args, **options)


def new_rows(library: Library, name: str) -> NewRows:
    return NewRows(library.tables, name, KnownKeys(library.tables, "videos", "video_id").hold)


def frames(library: Library, *videos: MadeVideo, first: int = 0, until: int | None = None) -> None:
    library.writer.add_frames({video.video_id: video.frame_rows()[first:until] for video in videos})


def same(library: Library, rows: NewRows, name: str, *video_ids: str) -> Counts:
    """Count by both ways, which have to agree."""
    counts, whole = rows.counts(video_ids), count_rows(library.tables, name)
    for video_id in video_ids:
        assert counts.rows[video_id] == whole.rows.get(video_id, 0)
        assert counts.distinct[video_id] == whole.distinct.get(video_id, 0)
    return counts


def test_rows_since_the_beginning_count_until_they_are_deleted(library: Library) -> None:
    old, first, second = made("0000", 5, seed=1), made("aaaa", 6, seed=1), made("bbbb", 3, seed=2)
    frames(library, old)
    rows, vectors = new_rows(library, "frames"), new_rows(library, library.vectors_table)
    assert rows.counts(["0000", "aaaa"]).rows == {"0000": 0, "aaaa": 0}
    frames(library, first, until=2)
    assert same(library, rows, "frames", "aaaa").rows == {"aaaa": 2}
    frames(library, first, first=2)
    frames(library, second)
    assert same(library, rows, "frames", "aaaa", "bbbb").rows == {"aaaa": 6, "bbbb": 3}
    frames(library, first, first=4)  # twice
    assert same(library, vectors, library.vectors_table, "aaaa") == Counts({"aaaa": 8}, {"aaaa": 6})
    library.writer.discard_frames("aaaa", 2, 4)
    assert same(library, rows, "frames", "aaaa", "bbbb").rows == {"aaaa": 6, "bbbb": 3}
    library.writer.discard("aaaa", "bbbb")  # the whole fragment goes
    assert same(library, rows, "frames", "aaaa", "bbbb").rows == {"aaaa": 0, "bbbb": 0}
    frames(library, first)
    frames(library, second)
    assert same(library, rows, "frames", "aaaa", "bbbb").rows == {"aaaa": 6, "bbbb": 3}
    rows.forget(["aaaa"])
    library.writer.discard_frames("bbbb", 0, 1)
    assert rows.counts(["aaaa", "bbbb"]).rows == {"aaaa": 0, "bbbb": 2}, "what is forgotten does not come back"
    rows.forget(["bbbb"])
    assert rows._fragments == {}


@pytest.mark.parametrize("looked_before", [True, False])
def test_joined_fragments_hold_the_same_rows(library: Library, looked_before: bool) -> None:
    frames(library, made("0000", 5, seed=0))
    rows = new_rows(library, "frames")
    videos = [made(f"000{n}", n, seed=n) for n in range(1, 5)]
    for video in videos:
        frames(library, video)
        if looked_before:
            rows.counts([video.video_id])
    frames(library, videos[0])
    optimize(library.tables, "frames", AFTER_RUN)
    assert len(library.tables["frames"].get_fragments()) == 1
    assert same(library, rows, "frames", *(video.video_id for video in videos)).rows["0001"] == 2


def test_complete_videos_in_joined_fragments_are_left_out(library: Library) -> None:
    large = made("aaaa", JOINED_ROWS, seed=1)
    write(library, large)
    rows = new_rows(library, "frames")
    frames(library, made("bbbb", 3, seed=2))
    tables = library.tables = CountingTables(library.uri)
    library.writer.note_rows()
    tables.scans.clear()
    new = made("cccc", 3, seed=2)
    write(library, new, complete=False)
    optimize(tables, "frames", AFTER_RUN)
    assert rows.counts(["aaaa", "bbbb"]).rows == {"aaaa": 0, "bbbb": 3}
    assert library.writer.complete([new.video_row()]) == ()
    assert tables.scans == [], "a joined fragment of short films names so many that each was read with all"


def test_a_commit_of_a_run_reads_no_table_whole(library: Library) -> None:
    tables = library.tables = CountingTables(library.uri)
    library.writer.note_rows()
    tables.scans.clear()  # the ids of all videos, once
    good, doubled = made("aaaa", 5, seed=1), made("bbbb", 5, seed=2)
    written = library.writer.add_frames({good.video_id: good.frame_rows()})
    assert library.writer.complete([good.video_row()], digests=written) == ()
    assert tables.scans == []
    for _ in range(2):
        write(library, doubled, complete=False)
    assert library.writer.complete([doubled.video_row()]) == ("bbbb",)
    assert "frames" in tables.scans  # whether it is rejected is decided by the whole tables
    write(library, doubled, complete=False)
    assert library.writer.complete([doubled.video_row()]) == ()
    assert library.video_ids() == {"aaaa", "bbbb"}


# Rows are counted by video, twice written ones once more, without those that an optional stage added.


def test_many_videos_in_one_commit(library):
    videos = [made(f"{n:04d}", n + 1, seed=n, lines=((0.0, 1.0, f"line {n}"),)) for n in range(9)]
    library.writer.add_frames({video.video_id: video.frame_rows() for video in videos})
    library.writer.add_speech({video.video_id: video.speech() for video in videos})
    library.writer.add_segments({video.video_id: [SegmentRow("", 0, 0.0, 1.0, "shot")] * 2 for video in videos})
    assert library.writer.complete([replace(video.video_row(), segments=2) for video in videos]) == ()
    for video in videos:
        np.testing.assert_array_equal(library.vectors(video.video_id).vectors, video.vectors)
        assert [row.segment_no for row in library.segments(video.video_id)] == [0, 1]
    library.writer.discard(*(video.video_id for video in videos[:5]))
    assert [row.video_id for row in library.videos()] == ["0005", "0006", "0007", "0008"]
    assert [hit.video_id for hit in library.search.lines("speech", "line", k=20)] == ["0005", "0006", "0007", "0008"]


def test_sources_are_remembered(library):
    first = SourceRow("/films/it's.mp4", "aaaa", 1234, "2026-01-02 1234", WHEN)
    copy = SourceRow("s3://films/copy.mp4", "aaaa", None, '"etag"', WHEN)
    library.ingest_log.add_sources([first, copy])
    library.ingest_log.add_sources([replace(first, stamp="old"), replace(first, video_id="bbbb")])
    library.ingest_log.add_sources([])
    assert library.ingest_log.sources() == {first.uri: replace(first, video_id="bbbb"), copy.uri: copy}
    library.writer.discard("bbbb")
    assert library.ingest_log.sources() == {copy.uri: copy}


def test_runs_are_kept(library):
    run = RunRow("r1", "ingest", "running", WHEN, None, {})
    done = replace(run, state="done", ended_at=WHEN, report={"videos": 3, "seconds": {"decode": 0.5}})
    later = RunRow("r2", "add captions", "failed", WHEN + timedelta(hours=1), None, {"stopped": "no model"})
    for each in (run, done, later):
        library.ingest_log.add_run(each)
    assert library.ingest_log.runs() == [later, done]


def commits(tables: Tables, name: str, since: int) -> list[str]:
    """Kinds of the commits to a table after a version."""
    count = tables.version(name) - since
    return [type(each.operation).__name__ for each in tables[name].get_transactions(count) if each is not None]


def test_what_a_run_completes_is_appended(library: Library) -> None:
    """An upsert joins with all keys that no index covers, so that each commit took longer than the one before."""
    write(library, made("aaaa", 2, seed=1))
    library.ingest_log.add_sources([SourceRow("/films/a.mp4", "aaaa", 1, "then", WHEN)])
    library.writer.note_rows()
    library.ingest_log.note_sources()
    tables = library.tables
    versions = {name: tables.version(name) for name in ("videos", "sources")}
    write(library, made("bbbb", 2, seed=2))
    library.ingest_log.add_sources([SourceRow("/films/b.mp4", "bbbb", 1, "now", WHEN)])
    assert {name: commits(tables, name, version) for name, version in versions.items()} == {
        "videos": ["Append"], "sources": ["Append"],
    }  # fmt: skip
    library.ingest_log.add_sources([SourceRow("/films/a.mp4", "bbbb", 1, "now", WHEN)])
    assert library.ingest_log.sources().keys() == {"/films/a.mp4", "/films/b.mp4"}
    assert library.ingest_log.sources()["/films/a.mp4"].video_id == "bbbb"


def test_segments_by_number_and_lines_by_video_alone(library: Library) -> None:
    segments, lines = new_rows(library, "segments"), new_rows(library, "speech")
    video = made("aaaa", 3, seed=1, lines=((0.0, 1.0, "hello"), (1.0, 2.0, "hello")))
    write(library, video, complete=False)
    library.additions.add_speech({"aaaa": [spoken(0, "heard")]}, "whisper")
    assert same(library, lines, "speech", "aaaa").rows == {"aaaa": 2}
    assert same(library, segments, "segments", "aaaa").rows == {"aaaa": 0}
    library.additions.add_speech({"aaaa": [spoken(0, "from a file")]}, "someone", "imported")
    assert count_rows(library.tables, "speech").rows == rows_by_video(library.tables, "speech") == {"aaaa": 2}


WORD = pa.struct([("text", pa.string()), ("start_s", pa.float64())])


COLUMNS = pa.schema(
    [
        ("video_id", pa.string()),
        ("frame_no", pa.int32()),
        ("time_s", pa.float64()),
        ("text", pa.string()),
        ("model", pa.string()),
        ("crc", pa.uint32()),
        ("vector", pa.list_(pa.float16(), 3)),
        ("words", pa.list_(WORD)),
        ("when", pa.timestamp("us", tz="UTC")),
    ]
)


ROW: dict[str, Any] = {
    "video_id": "aaaa",
    "frame_no": 7,
    "time_s": 0.0,
    "text": "हाथी",
    "model": None,
    "crc": 2**32 - 1,
    "vector": [np.float16(each) for each in (0.5, -0.25, 6e4)],
    "words": [{"text": "one", "start_s": 1.0}, {"text": "two", "start_s": 2.0}],
    "when": 5,
}


def hashed(*rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist([ROW | row for row in rows], schema=COLUMNS)


def one(**changes: Any) -> int:
    return row_hashes(hashed(changes))[0]


CHANGES: list[dict[str, Any]] = [
    {"video_id": "aaab"},
    {"frame_no": 8},
    {"frame_no": None},
    {"time_s": -0.0},
    {"time_s": float("nan")},
    {"time_s": np.nextafter(0.0, 1.0)},
    {"text": "हाथ"},
    {"text": ""},
    {"text": None},
    {"model": ""},
    {"model": "हाथी", "text": None},
    {"crc": 2**32 - 2},
    {"vector": None},
    {"vector": [np.float16(each) for each in (-0.5, -0.25, 6e4)]},
    {"vector": [np.float16(each) for each in (0.5, -0.25, np.nan)]},
    {"words": None},
    {"words": []},
    {"words": ROW["words"][:1]},
    {"words": ROW["words"][::-1]},
    {"words": [{"text": "onet", "start_s": 1.0}, {"text": "wo", "start_s": 2.0}]},
    {"words": [{"text": "one", "start_s": 1.0}, {"text": "two", "start_s": None}]},
    {"when": 6},
]


def test_any_other_value_is_another_row_every_payload_of_nan_too() -> None:
    for changes in CHANGES:
        assert one() == one() != one(**changes), changes
    bits = np.array([0x7E00, 0x7E01, 0xFE00], np.uint16).view(np.float16)
    assert len({one(vector=[bit, bit, bit]) for bit in bits}) == 3


LINES = [{"frame_no": n, "text": f"line {n}", "model": None if n % 2 else "m"} for n in range(40)]


LAYOUTS: list[Callable[[pa.Table], Any]] = [
    lambda rows: rows.take(pa.array(np.random.default_rng(0).permutation(40))),
    lambda rows: pa.concat_tables([rows.slice(0, 7), rows.slice(7, 1), rows.slice(8)]),
    lambda rows: pa.concat_tables([hashed(*LINES[:3]), rows.slice(3)]).select(sorted(COLUMNS.names)),
    lambda rows: rows.append_column("later", pa.nulls(40, pa.list_(pa.string()))),
    lambda rows: rows.append_column("jpeg", pa.array([b"a picture"] * 40)).append_column(
        "digests", pa.array(["{}"] * 40)
    ),
    lambda rows: rows.combine_chunks().to_batches()[0],
]


def test_the_same_rows_in_another_layout_have_the_same_digest() -> None:
    for laid_out in LAYOUTS:
        assert digests_by_video(laid_out(hashed(*LINES))) == digests_by_video(hashed(*LINES))


def test_digests_of_parts_add_up_by_video() -> None:
    rows = hashed(*LINES, *({"video_id": "bbbb", "frame_no": n} for n in range(3)))
    parts = digests_by_video(rows.slice(0, 11)) + digests_by_video(rows.slice(11))
    whole = digests_by_video(rows)
    assert parts == whole
    assert set(whole) == {"aaaa", "bbbb"}
    assert digests_by_video(hashed(*LINES, LINES[0])) != digests_by_video(hashed(*LINES))  # a row that is there twice


def test_a_digest_is_written_as_128_bits() -> None:
    assert (as_text(0), as_text((1 << 128) + 255)) == ("0" * 32, "0" * 30 + "ff")
