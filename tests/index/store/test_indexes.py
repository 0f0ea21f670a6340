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
from kinodex.index.store.indexes import AFTER_RUN, DURING_RUN, Thresholds, delete_old_states, refresh
from kinodex.index.sweep import audit
from tests.support.libraries.random_library import made, unit_vectors, write

ROUNDS = 12
VIDEOS = 4
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
            assert library.transcript(row.video_id)[0].text == "hello"
        assert len(library.search.frames(query, k=10)) in (0, 10)


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


def test_what_old_readers_may_need_stays(library):
    for number in range(4):
        write(library, made(f"{number:04d}", 5, seed=number))
    before = files(library, "frames")
    refresh(library.tables, Thresholds(fragments=2, picture_fragments=2))
    assert files(library, "frames") > before


def test_beside_an_ingest_no_graph_is_built(library):
    for number in range(3):
        write(library, made(f"{number:04d}", 200, seed=number))
    refresh(library.tables, DURING_RUN)
    vectors = next(path for path in Path(library.uri).iterdir() if path.name.startswith("vectors_"))
    assert not (vectors / "_indices").exists()
    refresh(library.tables, EAGER)
    assert (vectors / "_indices").exists()


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
    delete_old_states(library.tables, often)
    table = library.tables["videos"]
    assert len(table.version_refs()) == 1 < table.version
    assert audit(library).problems == ()


def test_indexes_change_no_result(library):
    soon = Thresholds(scalar_rows=100, vector_rows=100, stale_rows=100, fragments=3, picture_fragments=7)
    videos = [made(f"{n:04d}", 100, seed=n, lines=((0.0, 1.0, f"line {n}"),)) for n in range(6)]
    for video in videos[:4]:
        write(library, video)
    query = unit_vectors(1, 99)[0].astype(np.float32)
    refresh(library.tables, soon)
    for video in videos[4:]:
        write(library, video)
    before = library.search.frames(query, k=10)
    refresh(library.tables, soon)
    assert [hit.frame_no for hit in library.search.frames(query, k=10)] == [hit.frame_no for hit in before]
    for video in videos:
        np.testing.assert_array_equal(library.vectors(video.video_id).vectors, video.vectors)
        assert library.frames(video.video_id, [42])[0].jpeg == f"jpeg {video.video_id} 42".encode()
    assert library.search.transcript("line 5")[0].video_id == "0005"


MANY_LINES = 1_200_000
"""A word that stands in more than 2^20 lines: Lance's own merging of their index ends the process."""


@pytest.mark.slow
@pytest.mark.parametrize("when", [DURING_RUN, AFTER_RUN])
def test_an_index_of_words_outlives_a_million_lines(library, when):
    transcript = library.tables["transcript"].schema
    for first, until in ((0, 1_100_000), (1_100_000, MANY_LINES)):
        lines = range(first, until)
        columns = {
            "video_id": pa.array(["film"]).take(pa.array([0] * len(lines))),
            "start_s": pa.array([float(number) for number in lines]),
            "end_s": pa.array([number + 1.0 for number in lines]),
            "text": pa.array([f"line {number} of film" for number in lines]),
            "source": pa.array(["file"]).take(pa.array([0] * len(lines))),
        }
        rows = [columns.get(field.name, pa.nulls(len(lines), field.type)) for field in transcript]
        whole = pa.Table.from_arrays(
            [each.cast(field.type) for each, field in zip(rows, transcript, strict=True)], schema=transcript
        )
        pieces = whole.to_batches(max_chunksize=50_000) if first else [whole]
        for piece in pieces:
            library.tables.append("transcript", pa.Table.from_batches([piece]) if first else piece)
        refresh(library.tables, replace(when, fragments=0))
    table = library.tables["transcript"]
    (index,) = (each for each in table.describe_indices() if each.field_names == ["text"])
    assert index.num_rows_indexed == table.count_rows() == MANY_LINES
    found = table.to_table(columns=["start_s", "_score"], full_text_query={"query": "1150000", "columns": ["text"]})
    assert found["start_s"].to_pylist() == [1_150_000.0]


def test_an_index_of_words_that_is_missing_is_made_again(library):
    """As a process leaves it that is killed while it joins the fragments of many lines."""
    write(library, made("aaaa", 3, seed=1, lines=((0.0, 1.0, "hello there"),)))
    library.tables["transcript"].drop_index("by_text")
    assert [hit.text for hit in library.search.transcript("hello", k=3)] == ["hello there"]
    refresh(library.tables, DURING_RUN)
    assert [each.name for each in library.tables["transcript"].describe_indices()] == ["by_text"]
    assert [hit.text for hit in library.search.transcript("hello", k=3)] == ["hello there"]
