"""Rows of a table are appended, replaced, inserted, updated, deleted and read; conflicts are retried."""

from __future__ import annotations

import pytest
from lancedb.expr import col, lit

from index.errors import StorageError
from index.store.filters import equal
from index.store.tables import COMMIT_ATTEMPTS, Tables, retry_on_conflict


def source(uri: str, video_id: str) -> dict[str, object]:
    return {"uri": uri, "video_id": video_id, "size_bytes": None, "stamp": "", "seen_at": 0}


def test_rows_by_their_keys(tables: Tables) -> None:
    tables.append("sources", [source("a", "1"), source("b", "2")])
    tables.upsert("sources", ["uri"], [source("b", "3"), source("c", "4")])
    tables.insert("sources", ["uri"], [source("a", "9"), source("d", "5")])
    rows = tables.rows("sources", None, ["uri", "video_id"]).sort_by("uri").to_pylist()
    assert [(row["uri"], row["video_id"]) for row in rows] == [("a", "1"), ("b", "3"), ("c", "4"), ("d", "5")]
    assert tables.update("sources", equal("uri", "a"), {"video_id": "7"}) == 1
    assert tables.count("sources", equal("video_id", "7")) == 1
    tables.delete("sources", equal("uri", "a") | equal("uri", "b"))
    assert tables.count("sources") == 2


def test_nothing_is_committed_where_there_is_nothing_to_write(tables: Tables) -> None:
    before = tables.version("sources")
    tables.append("sources", [])
    tables.upsert("sources", ["uri"], [])
    tables.delete("sources", equal("uri", "nothing"))
    assert tables.version("sources") == before
    tables.append("sources", [source("a", "1")])
    assert tables.version("sources") > before


def test_batches_say_where_rows_are(tables: Tables) -> None:
    tables.append("sources", [source(f"{number}", "1") for number in range(3)])
    (batch,) = tables.batches("sources", col("uri") != lit("1"), ["uri"], row_ids=True)
    assert sorted(batch["uri"].to_pylist()) == ["0", "2"]
    assert len(set(batch["_rowid"].to_pylist())) == 2


def test_a_missing_table(tables: Tables) -> None:
    assert not tables.has("nothing")
    with pytest.raises(StorageError, match="missing or cut off"):
        tables.count("nothing")


def test_only_a_conflict_is_retried() -> None:
    attempts: list[str] = []

    def conflict_twice() -> int:
        attempts.append("conflict")
        if len(attempts) < 3:
            raise RuntimeError("lance error: Retryable commit conflict for version 5")
        return len(attempts)

    def fail() -> None:
        attempts.append("failure")
        raise RuntimeError("another error")

    assert retry_on_conflict(conflict_twice) == 3 < COMMIT_ATTEMPTS
    with pytest.raises(RuntimeError, match="another error"):
        retry_on_conflict(fail)
    assert attempts.count("failure") == 1
