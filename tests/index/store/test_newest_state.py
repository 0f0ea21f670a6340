"""The newest state of a table by the names of its files: the one that Lance finds, or left to Lance."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from kinodex.index.store.database import MOST_STEPS, is_another, newest_state, newest_version, state_mark
from kinodex.index.store.quiet_lance import lance


@pytest.fixture
def table(tmp_path: Path) -> Path:
    lance.write_dataset(pa.table({"n": [0]}), tmp_path / "t.lance", data_storage_version="2.2")
    return tmp_path / "t.lance"


def append(table: Path, times: int = 1) -> None:
    for _ in range(times):
        lance.write_dataset(pa.table({"n": [1]}), table, mode="append")


def test_it_is_the_one_that_lance_finds(table: Path) -> None:
    known = lance.dataset(table)
    assert newest_version(table, known.version) == known.version
    assert newest_state(known, table, state_mark(table, known.version)).version == known.version
    append(table, 3)
    assert newest_version(table, known.version) == lance.dataset(table).version == known.version + 3
    newest = newest_state(known, table, state_mark(table, known.version))
    assert (newest.version, newest.count_rows(), known.count_rows()) == (known.version + 3, 4, 1)
    newest.insert(pa.table({"n": [2]}))
    assert newest_state(known, table, state_mark(table, known.version)).count_rows() == 5


@pytest.mark.parametrize("later", [0, 1, -1])
def test_a_table_that_was_made_again_is_another(table: Path, later: int) -> None:
    append(table, 2)
    known = lance.dataset(table)
    mark = state_mark(table, known.version)
    shutil.rmtree(table)
    lance.write_dataset(pa.table({"n": [9]}), table, data_storage_version="2.2")
    append(table, 2 + later)
    newest = newest_state(known, table, mark)
    assert newest.to_table()["n"].to_pylist() == [9] + [1] * (2 + later)
    assert is_another(known, newest, table, mark)
    assert is_another(known, newest, None, None) is (later <= 0), "in an object store"
    assert not is_another(newest, newest_state(newest, table, state_mark(table, newest.version)), table, None)


def test_lance_lists_them_where_the_known_one_was_deleted_or_is_far_behind(table: Path) -> None:
    known = lance.dataset(table)
    append(table, 2)
    lance.dataset(table).cleanup_old_versions(timedelta(microseconds=1))
    assert newest_version(table, known.version) is None
    assert newest_state(known, table, state_mark(table, known.version)).count_rows() == 3
    assert newest_state(known, None, None).count_rows() == 3
    (table / "_versions").rename(table / "kept")
    (table / "_versions").mkdir()
    for version in range(1, MOST_STEPS + 3):
        (table / "_versions" / f"{2**64 - 1 - version:020}.manifest").touch()
    assert newest_version(table, 1) is None
    assert newest_version(table, 3) == MOST_STEPS + 2


def test_names_of_another_kind_are_left_to_lance(tmp_path: Path) -> None:
    old = tmp_path / "old.lance"
    lance.write_dataset(pa.table({"n": [0]}), old, enable_v2_manifest_paths=False)
    known = lance.dataset(old)
    append(old)
    assert newest_version(old, known.version) is None
    assert newest_state(known, old, None).count_rows() == 2
