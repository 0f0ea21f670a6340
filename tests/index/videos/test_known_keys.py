"""Rows by key: those of new keys are appended, which no table makes slower; others take the place of the old ones."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa

from kinodex.index.library import Library
from kinodex.index.rows import SourceRow
from kinodex.index.store.database import Tables
from kinodex.index.videos.writer import MERGE_FROM, KnownKeys
from tests.support.libraries.random_library import WHEN, made, write

SCHEMA = pa.schema([("key", pa.string()), ("value", pa.int32())])


def rows_of(tables: Tables) -> list[dict[str, Any]]:
    return sorted(tables.rows("pairs").to_pylist(), key=lambda row: row["key"])


def commits(tables: Tables, name: str, since: int) -> list[str]:
    """Kinds of the commits to a table after a version."""
    count = tables.version(name) - since
    return [type(each.operation).__name__ for each in tables[name].get_transactions(count) if each is not None]


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


def test_many_new_keys_are_remembered(library: Library) -> None:
    library.tables.create("pairs", SCHEMA)
    known = KnownKeys(library.tables, "pairs", "key")
    for first in (0, MERGE_FROM):
        known.write([{"key": str(number), "value": 0} for number in range(first, first + MERGE_FROM)])
    known.write([{"key": str(number), "value": 1} for number in (0, MERGE_FROM - 1, 2 * MERGE_FROM - 1)])
    assert library.tables.count("pairs") == 2 * MERGE_FROM
    values = library.tables.rows("pairs", None, ["value"])["value"]
    assert sum(values.to_pylist()) == 3


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
