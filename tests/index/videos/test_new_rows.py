"""New rows are counted as the whole table would be, whatever adds, deletes, doubles or joins them meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kinodex.index.library import Library
from kinodex.index.store.database import Tables
from kinodex.index.store.indexes import AFTER_RUN, optimize
from kinodex.index.videos.writer import JOINED_ROWS, Counts, KnownKeys, NewRows, count_rows
from tests.support.libraries.random_library import MadeVideo, made, spoken, write


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


def test_rows_of_before_are_not_read_and_those_after_are(library: Library) -> None:
    old, new = made("aaaa", 5, seed=1), made("bbbb", 4, seed=2)
    frames(library, old)
    rows = new_rows(library, "frames")
    assert rows.counts(["aaaa", "bbbb"]).rows == {"aaaa": 0, "bbbb": 0}
    frames(library, new, until=2)
    assert same(library, rows, "frames", "bbbb").rows == {"bbbb": 2}
    frames(library, new, first=2)
    assert same(library, rows, "frames", "bbbb").rows == {"bbbb": 4}


def test_a_row_that_is_there_twice_counts_twice_and_is_one(library: Library) -> None:
    rows = new_rows(library, library.vectors_table)
    video = made("aaaa", 6, seed=1)
    frames(library, video)
    frames(library, video, first=4)
    assert same(library, rows, library.vectors_table, "aaaa") == Counts({"aaaa": 8}, {"aaaa": 6})


def test_rows_that_are_deleted_count_no_more_and_written_again_they_do(library: Library) -> None:
    rows = new_rows(library, "frames")
    first, second = made("aaaa", 6, seed=1), made("bbbb", 3, seed=2)
    frames(library, first, second)
    same(library, rows, "frames", "aaaa", "bbbb")
    library.writer.discard_frames("aaaa", 2, 4)
    assert same(library, rows, "frames", "aaaa", "bbbb").rows == {"aaaa": 4, "bbbb": 3}
    library.writer.discard("aaaa", "bbbb")  # the whole fragment goes
    assert same(library, rows, "frames", "aaaa", "bbbb").rows == {"aaaa": 0, "bbbb": 0}
    frames(library, first)
    assert same(library, rows, "frames", "aaaa").rows == {"aaaa": 6}


def test_what_is_forgotten_does_not_come_back_with_a_deletion_beside_it(library: Library) -> None:
    rows = new_rows(library, "frames")
    frames(library, made("aaaa", 6, seed=1), made("bbbb", 3, seed=2))
    same(library, rows, "frames", "aaaa", "bbbb")
    rows.forget(["aaaa"])
    library.writer.discard_frames("bbbb", 0, 1)
    assert rows.counts(["aaaa", "bbbb"]).rows == {"aaaa": 0, "bbbb": 2}
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
    optimize(library.tables, "frames", AFTER_RUN)
    assert rows.counts(["aaaa", "bbbb"]).rows == {"aaaa": 0, "bbbb": 3}


def test_a_run_looks_for_no_complete_video_in_the_table(library: Library) -> None:
    """A joined fragment of short films names so many that each was read with all that are complete."""
    write(library, made("aaaa", JOINED_ROWS, seed=1))
    tables = library.tables = CountingTables(library.uri)
    library.writer.note_rows()
    tables.scans.clear()
    new = made("bbbb", 3, seed=2)
    write(library, new, complete=False)
    optimize(tables, "frames", AFTER_RUN)
    assert library.writer.complete([new.video_row()]) == ()
    assert tables.scans == []


def test_segments_by_number_and_lines_by_video_alone(library: Library) -> None:
    segments, lines = new_rows(library, "segments"), new_rows(library, "transcript")
    video = made("aaaa", 3, seed=1, lines=((0.0, 1.0, "hello"), (1.0, 2.0, "hello")))
    write(library, video, complete=False)
    library.additions.add_speech({"aaaa": [spoken(0, "heard")]}, "whisper")
    assert same(library, lines, "transcript", "aaaa").rows == {"aaaa": 2}
    assert same(library, segments, "segments", "aaaa").rows == {"aaaa": 0}


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


def test_rows_of_another_run_that_come_after_the_note_are_seen(library: Library) -> None:
    """A worker that wrote after its run had lost the lease: the video is rejected, as by a count of everything."""
    library.writer.note_rows()
    video = made("aaaa", 5, seed=1)
    write(library, video, complete=False)
    write(Library.open(library.uri), video, complete=False)
    assert library.writer.complete([video.video_row()]) == ("aaaa",)
    assert library.video_ids() == set()
