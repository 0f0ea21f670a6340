"""Captions that agents keep: one a part and model, in a table made when first needed, gone with their video."""

from __future__ import annotations

from dataclasses import replace
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

from kinodex.index.annotations import MANY_FRAGMENTS
from kinodex.index.library import Library
from kinodex.index.rows import ClipRow
from kinodex.index.store.database import Tables
from kinodex.index.store.indexes import Thresholds, refresh, small_fragments
from kinodex.index.sweep import audit, sweep
from tests.support.libraries.random_library import SETTINGS, fingerprint, made, run_together, write

OFTEN = Thresholds(scalar_rows=5, vector_rows=30, stale_rows=5, stale_lines=5, fragments=2, vector_fragments=2)
WRITERS = 2


@pytest.fixture
def library(tmp_path) -> Library:
    library = Library.create(str(tmp_path / "library"), SETTINGS, fingerprint())
    for number, video_id in enumerate(("aaaa", "bbbb")):
        write(library, made(video_id, 6, seed=number))
    return library


def clip(video_id: str, number: int, model: str = "m", text: str = "said") -> ClipRow:
    return ClipRow(video_id, model, 4.0 * number, 4.0 * number + 4, f"{text} {number}", 0.5, 4)


def tables_of(library: Library) -> Tables:
    return Tables(library.uri)


def test_a_library_without_the_table_is_read_and_kept_as_before(library):
    assert library.clips.read("aaaa", "m") == []
    library.clips.add([])
    refresh(library.tables, OFTEN)
    assert sweep(library) == 0
    library.writer.discard("bbbb")
    assert "clips" not in tables_of(library).names()


def test_clips_come_back_by_video_and_model_in_order_of_time(library):
    rows = [clip("aaaa", 1), clip("aaaa", 0), clip("bbbb", 0), clip("aaaa", 0, "other")]
    library.clips.add(rows)
    again = Library.open(library.uri)
    assert again.clips.read("aaaa", "m") == [rows[1], rows[0]]
    assert again.clips.read("aaaa", "other") == [rows[3]]
    assert again.clips.read("bbbb", "other") == []
    assert again.info().videos == 2


def test_the_first_of_a_part_stays_and_others_of_other_lengths_stand_beside_it(library):
    first = clip("aaaa", 0)
    library.clips.add([first])
    longer = replace(first, end_s=8.0)
    library.clips.add([replace(first, text="later"), replace(first, end_s=4.0 + 1e-9, text="later"), longer])
    assert library.clips.read("aaaa", "m") == [first, longer]


def test_clips_are_neither_captions_nor_searched(library):
    library.clips.add([clip("aaaa", 0)])
    assert library.captions("aaaa") == []
    assert library.search.captions("said") == []
    assert len(library.additions.pending("captions", "m")) == 2
    assert library.additions.discard_leftovers("captions", "m") == 0
    assert len(library.clips.read("aaaa", "m")) == 1


def test_clips_go_with_their_video_and_are_not_taken_of_others(library):
    library.clips.add([clip("aaaa", 0), clip("bbbb", 0), clip("cccc", 0)])
    assert tables_of(library).count("clips") == 2
    library.writer.discard("aaaa")
    library.clips.add([clip("aaaa", 1)])
    assert tables_of(library).count("clips") == 1
    assert audit(library).problems == ()


def test_a_sweep_finds_clips_that_were_written_while_their_video_went(library):
    library.clips.add([clip("aaaa", 0), clip("bbbb", 0)])
    tables = tables_of(library)
    tables.append(
        "clips", [dict(zip(tables["clips"].schema.names, ("dddd", "m", "0-4", 0, 4, "x", 1, 4), strict=True))]
    )
    assert audit(library).orphans == ("dddd",)
    assert sweep(library) == 1
    assert audit(library).orphans == ()
    assert len(library.clips.read("aaaa", "m")) == 1


def test_a_table_whose_making_was_interrupted_is_made_again(library):
    Path(library.uri, "clips.lance").mkdir()
    assert library.clips.read("aaaa", "m") == []
    assert library.info().stored_bytes > 0
    refresh(library.tables, OFTEN)
    library.clips.add([clip("aaaa", 0)])
    assert library.clips.read("aaaa", "m") == [clip("aaaa", 0)]


def test_many_small_writes_are_joined_without_a_refresh(library):
    for number in range(MANY_FRAGMENTS + 2):
        library.clips.add([clip("aaaa", number)])
    assert small_fragments(tables_of(library), "clips") < 5
    assert len(library.clips.read("aaaa", "m")) == MANY_FRAGMENTS + 2


def keep(uri: str, number: int, start: Barrier) -> None:
    """Parts that overlap with the other writers', some of them of a model of its own."""
    library = Library.open(uri)
    start.wait()
    for first in range(0, 24, 4):
        library.clips.add([clip("aaaa", n, text=f"by {number}") for n in range(first, first + 8)])
        library.clips.add([clip("aaaa", n, f"own {number}") for n in range(first, first + 4)])


def ingest(uri: str, number: int, start: Barrier) -> None:
    """Videos come and go, and maintenance runs, meanwhile."""
    library = Library.open(uri)
    start.wait()
    for n in range(3):
        video = made(f"v{number}{n}", 6, seed=n)
        write(library, video)
        library.clips.add([clip(video.video_id, 0)])
        refresh(library.tables, OFTEN)
        library.writer.discard(video.video_id)


@pytest.mark.slow
def test_several_processes_keep_at_once_beside_an_ingest(library):
    spawn = get_context("spawn")
    start = spawn.Barrier(WRITERS + 1)
    works = [*(keep for _ in range(WRITERS)), ingest]
    run_together([spawn.Process(target=work, args=(library.uri, n, start)) for n, work in enumerate(works)])
    assert [row.start_s for row in library.clips.read("aaaa", "m")] == [4.0 * n for n in range(28)]
    for number in range(WRITERS):
        assert len(library.clips.read("aaaa", f"own {number}")) == 24
    assert tables_of(library).count("clips") == 28 + WRITERS * 24
    assert audit(library).problems == ()
