"""Sizes, fragments and indexes of tables."""

from __future__ import annotations

from kinodex.index.library import Library
from kinodex.index.maintain import table_facts
from kinodex.index.store.indexes import Thresholds, refresh
from tests.support.libraries.random_library import made, write


def test_tables_are_measured(library: Library) -> None:
    for number in range(3):
        write(library, made(f"{number:04d}", 10, seed=number))
    frames = {each.name: each for each in table_facts(library.tables)}["frames"]
    assert (frames.rows, frames.fragments, frames.indexes) == (30, 3, ())
    assert frames.disk_bytes is not None
    assert 0 < frames.data_bytes <= frames.disk_bytes
    refresh(library.tables, Thresholds(scalar_rows=10, picture_fragments=1))
    after = {each.name: each for each in table_facts(library.tables)}["frames"]
    assert (after.rows, after.fragments) == (30, 1)
    assert sorted(each.name for each in after.indexes) == ["by_frame_key", "by_video_id"]
