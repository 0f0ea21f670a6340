"""The index of vectors in parts: which are built, what memory allows, and that searches find the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kinodex.index.library import Library
from kinodex.index.store.indexes import (
    PART_ROWS,
    IndexState,
    Part,
    Thresholds,
    build_index,
    count_parts,
    plan_parts,
    read_state,
    refresh,
    rows_that_fit,
)
from tests.support.libraries.random_library import SETTINGS, fingerprint, made, numpy_search, unit_vectors, write

QUERIES = unit_vectors(8, seed=99).astype(np.float32)
ROWS = 60
SOON = Thresholds(
    scalar_rows=10**6, vector_rows=100, stale_rows=10, fragments=10**6, vector_fragments=10**6, part_rows=200
)


def part(*fragments: int, rows: int) -> Part:
    return Part(frozenset(fragments), rows)


def test_what_is_new_becomes_parts_of_the_most_rows():
    state = IndexState((), dict.fromkeys(range(6), 40))
    assert plan_parts(state, 100) == [part(0, 1, rows=80), part(2, 3, rows=80), part(4, 5, rows=80)]
    assert plan_parts(IndexState((), {0: 300, 1: 10}), 100) == [part(0, rows=300), part(1, rows=10)]
    assert plan_parts(IndexState((part(0, rows=10),), {}), 100) == []


def test_few_small_parts_are_left_alone_and_more_are_joined():
    small = (part(0, 1, rows=10), part(2, rows=12), part(3, rows=19))
    large = part(4, rows=60)
    assert plan_parts(IndexState((*small[:2], large), {5: 10}), 100) == [part(5, rows=10)]
    assert plan_parts(IndexState((*small, large), {5: 10}), 100) == [part(0, 1, 2, 3, 5, rows=51)]


def test_parts_that_were_joined_draw_larger_ones_after_them():
    parts = (*(part(n, rows=10) for n in range(3)), *(part(n, rows=70) for n in range(3, 6)), part(6, rows=500))
    (joined,) = plan_parts(IndexState(parts, {7: 10}), 1000)
    assert joined == part(0, 1, 2, 3, 4, 5, 7, rows=250)


def test_the_number_of_parts_and_what_is_built_again_stay_small():
    """A thousand runs of a thousand rows each: as the planner alone would have it."""
    parts: tuple[Part, ...] = ()
    built, most = 0, 0
    for number in range(1000):
        new = plan_parts(IndexState(parts, {number: 1000}), 100_000)
        gone = frozenset[int]().union(*(each.fragments for each in new))
        parts = (*(each for each in parts if not each.fragments & gone), *new)
        built, most = built + sum(each.rows for each in new), max(most, len(parts))
    assert frozenset[int]().union(*(each.fragments for each in parts)) == frozenset(range(1000))
    assert most <= 1_000_000 / 50_000 + 12
    assert built <= 5 * 1_000_000


def test_a_part_takes_half_of_the_free_memory_at_most():
    assert rows_that_fit(768, 64 * 2**30) == PART_ROWS
    assert 300_000 < rows_that_fit(768, 4 * 2**30) < 500_000
    assert rows_that_fit(768, 4 * 2**30) < rows_that_fit(64, 4 * 2**30) < PART_ROWS
    assert rows_that_fit(768, 2**20) == 100_000
    assert rows_that_fit(64) >= 100_000


@pytest.fixture
def library(tmp_path: Path) -> Library:
    return Library.create(str(tmp_path / "library"), SETTINGS, fingerprint())


def vectors_name(library: Library) -> str:
    return next(name for name in library.tables.names() if name.startswith("vectors_"))


def test_a_library_that_grows_is_indexed_in_parts_and_finds_what_numpy_finds(library):
    videos = [made(f"{n:04d}", ROWS, seed=n) for n in range(12)]
    name, seen = vectors_name(library), []
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
    name = vectors_name(library)
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


def test_deleted_rows_and_joined_fragments_stay_in_their_parts(library):
    videos = [made(f"{n:04d}", ROWS, seed=n) for n in range(6)]
    for video in videos:
        write(library, video)
    name = vectors_name(library)
    build_index(library.tables, name, 2 * ROWS)
    table = library.tables[name]
    table.delete("video_id = '0001'")
    table.optimize.compact_files()
    state = read_state(library.tables[name])
    assert sorted(each.rows for each in state.parts) == [ROWS, 2 * ROWS, 2 * ROWS]
    assert state.fresh_rows == 0
    kept = [video for video in videos if video.video_id != "0001"]
    for query in QUERIES:
        nearest = {"column": "vector", "q": query, "k": 10, "metric": "cosine", "refine_factor": 5, "ef": 400}
        rows = library.tables[name].to_table(["video_id", "frame_no"], nearest=nearest).to_pylist()
        assert sorted((row["video_id"], row["frame_no"]) for row in rows) == sorted(numpy_search(kept, query, 10))
