"""Maintenance beside those who write and read: nobody fails, nothing is lost, and what is outdated goes."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime
from multiprocessing import get_context
from multiprocessing.synchronize import Event
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from kinodex.index.library import Library
from kinodex.index.rows import SourceRow
from kinodex.index.store.indexes import AFTER_RUN, DURING_RUN, Thresholds, clean, refresh
from kinodex.index.store.vector_index import IndexState, Part, build_index, count_parts, plan_parts, read_state
from kinodex.index.sweep import audit
from tests.support.libraries.random_library import made, numpy_search, unit_vectors, write

ROUNDS = 4
VIDEOS = 3
EAGER = Thresholds(
    scalar_rows=10, vector_rows=300, stale_rows=50, stale_lines=50, fragments=2, vector_fragments=2,
    picture_fragments=2, keep_s=2.0,
)  # fmt: skip


def _write(uri: str, worker: int) -> None:
    """As an ingest does: appends, one video of each round deleted and done again, rows completed, sources seen."""
    library = Library.open(uri)
    for number in range(ROUNDS):
        videos = [made(f"w{worker}r{number}v{v}", 10, seed=v, lines=((0.0, 1.0, "hello"),)) for v in range(VIDEOS)]
        write(library, videos[0], complete=False)
        library.writer.discard(videos[0].video_id)
        for video in videos:
            write(library, video, complete=False)
        assert library.writer.complete([video.video_row() for video in videos]) == ()
        now = datetime.now(UTC)
        library.ingest_log.add_sources([SourceRow(f"/{v.video_id}.mp4", v.video_id, None, "", now) for v in videos])
        time.sleep(0.05)


def _read(uri: str, ended: Event) -> None:
    library = Library.open(uri)
    query = unit_vectors(1, 99)[0].astype(np.float32)
    while not ended.is_set():
        for row in library.videos()[-3:]:
            assert library.vectors(row.video_id).frame_no.tolist() == list(range(10))
            assert library.frames(row.video_id, [9])[0].jpeg == f"jpeg {row.video_id} 9".encode()
            assert library.speech(row.video_id)[0].text == "hello"
        assert len(library.search.frames(query, k=10)) in (0, 10)
        ended.wait(0.05)


@pytest.mark.slow
def test_beside_writers_and_readers(library):
    context = get_context("spawn")
    ended = context.Event()
    writers = [context.Process(target=_write, args=(library.uri, worker)) for worker in range(2)]
    reader = context.Process(target=_read, args=(library.uri, ended))
    for process in (*writers, reader):
        process.start()
    rounds = 0
    while any(writer.is_alive() for writer in writers):
        refresh(library.tables, EAGER)
        rounds += 1
        time.sleep(0.1)
    ended.set()
    for process in (*writers, reader):
        process.join()
        assert process.exitcode == 0
    assert rounds > 2
    assert len(library.videos()) == len(library.ingest_log.sources()) == 2 * ROUNDS * VIDEOS
    assert audit(library).problems == ()


def files(library: Library, table: str) -> int:
    return sum(path.is_file() for path in (Path(library.uri) / f"{table}.lance").rglob("*"))


@pytest.mark.slow
def test_what_is_outdated_goes(library):
    with library.lease("ingest", "a run") as lease:
        for number in range(10):
            write(library, made(f"{number:04d}", 5, seed=number))
            lease.check()
        before = {table: files(library, table) for table in ("frames", "videos")}
        time.sleep(0.2)
        refresh(library.tables, Thresholds(fragments=2, picture_fragments=2, keep_s=0.1))
        for table, count in before.items():
            assert files(library, table) < count / 2
        lease.check()
    assert audit(library).problems == ()
    assert library.frames("0003", [4])[0].jpeg == b"jpeg 0003 4"


def test_beside_an_ingest_fragments_are_joined_and_nothing_old_is_deleted(library):
    """Deleting old states reads all of them, so a refresh beside a run does not."""
    often = replace(DURING_RUN, fragments=2, keep_s=0.0, scalar_rows=5, stale_rows=3)
    for number in range(6):
        write(library, made(f"{number:04d}", 2, seed=number))
    refresh(library.tables, often)
    table = library.tables["videos"]
    assert len(table.get_fragments()) == 1
    assert len(table.version_refs()) == table.version
    write(library, made("0006", 2, seed=6))
    refresh(library.tables, replace(often, fragments=0))
    (index,) = library.tables["videos"].describe_indices()
    assert index.num_rows_indexed == 6  # it waits until the rows that are new to it are more
    clean(library.tables, often)
    table = library.tables["videos"]
    assert len(table.version_refs()) == 1 < table.version
    assert audit(library).problems == ()


MANY_LINES = 1_080_000
"""A word that stands in more than 2^20 lines: Lance's own merging of their index ends the process."""


@pytest.mark.slow
def test_an_index_of_words_outlives_a_million_lines(library):
    transcript = library.tables["speech"].schema
    parts = ((0, 1_050_000, DURING_RUN), (1_050_000, 1_070_000, DURING_RUN), (1_070_000, MANY_LINES, AFTER_RUN))
    for first, until, when in parts:
        lines = range(first, until)
        columns = {
            "video_id": pa.repeat("film", len(lines)),
            "start_s": pa.array(np.arange(first, until, dtype=np.float64)),
            "end_s": pa.array(np.arange(first, until) + 1.0),
            "text": pa.array([f"film {number}" if number % 10_000 == 0 else "film" for number in lines]),
            "source": pa.repeat("file", len(lines)),
        }
        rows = [columns.get(field.name, pa.nulls(len(lines), field.type)) for field in transcript]
        whole = pa.Table.from_arrays(
            [each.cast(field.type) for each, field in zip(rows, transcript, strict=True)], schema=transcript
        )
        pieces = whole.to_batches(max_chunksize=10_000) if first else [whole]
        for piece in pieces:
            library.tables.append("speech", pa.Table.from_batches([piece]) if first else piece)
        refresh(library.tables, replace(when, fragments=0))
    table = library.tables["speech"]
    (index,) = (each for each in table.describe_indices() if each.field_names == ["terms"])
    assert index.num_rows_indexed == table.count_rows() == MANY_LINES
    found = table.to_table(columns=["start_s", "_score"], full_text_query={"query": "1060000", "columns": ["terms"]})
    assert found["start_s"].to_pylist() == [1_060_000.0]


# The index of vectors in parts: which are built, what memory allows, and that searches find the same.

QUERIES = unit_vectors(3, seed=99).astype(np.float32)
ROWS = 60
SOON = Thresholds(
    scalar_rows=10**6, vector_rows=100, stale_rows=10, fragments=10**6, vector_fragments=10**6, part_rows=200
)


def part(*fragments: int, rows: int) -> Part:
    return Part(frozenset(fragments), rows)


def test_what_is_new_becomes_parts_and_several_small_ones_are_joined():
    def planned(parts: tuple[Part, ...], fresh: dict[int, int], most: int = 100) -> list[Part]:
        return plan_parts(IndexState(parts, fresh), most)

    new = planned((), dict.fromkeys(range(6), 40))
    assert new == [part(0, 1, rows=80), part(2, 3, rows=80), part(4, 5, rows=80)]
    assert planned((), {0: 300, 1: 10}) == [part(0, rows=300), part(1, rows=10)]
    assert planned((part(0, rows=10),), {}) == []
    small, large = (part(0, 1, rows=10), part(2, rows=12), part(3, rows=19)), part(4, rows=60)
    assert planned((*small[:2], large), {5: 10}) == [part(5, rows=10)]
    assert planned((*small, large), {5: 10}) == [part(0, 1, 2, 3, 5, rows=51)]
    drawn = (*(part(n, rows=10) for n in range(3)), *(part(n, rows=70) for n in range(3, 6)), part(6, rows=500))
    assert planned(drawn, {7: 10}, 1000) == [part(0, 1, 2, 3, 4, 5, 7, rows=250)]


@pytest.mark.slow
def test_a_library_that_grows_is_indexed_in_parts_and_finds_what_numpy_finds(library):
    videos = [made(f"{n:04d}", ROWS, seed=n) for n in range(12)]
    name, seen = library.vectors_table, []
    for first in range(0, len(videos), 2):
        for video in videos[first : first + 2]:
            write(library, video)
        refresh(library.tables, SOON)
        table = library.tables[name]
        assert read_state(table).fresh_rows == 0
        assert all(each.rows <= 200 for each in read_state(table).parts)
        seen.append(count_parts(table))
        for query in QUERIES:
            ours = [(hit.video_id, hit.frame_no) for hit in library.search.frames(query, k=10)]
            assert ours == numpy_search(videos[: first + 2], query, 10)
    assert seen[0] == 1 and max(seen) <= 6
    version = library.tables.version(name)
    refresh(library.tables, SOON)
    assert library.tables.version(name) == version


def test_a_build_that_breaks_off_goes_on_with_the_next_part(library):
    for number in range(4):
        write(library, made(f"{number:04d}", ROWS, seed=number))
    name = library.vectors_table
    (first, *_, last) = plan_parts(read_state(library.tables[name]), ROWS)
    build_index(library.tables, name, ROWS)
    before = read_state(library.tables[name])
    assert [each.rows for each in before.parts] == [ROWS] * 4
    assert {first.fragments, last.fragments} <= {each.fragments for each in before.parts}
    write(library, made("9999", ROWS, seed=9))
    state = read_state(library.tables[name])
    assert (len(state.parts), state.fresh_rows) == (4, ROWS)
    build_index(library.tables, name, ROWS)
    assert len(read_state(library.tables[name]).parts) == 5
