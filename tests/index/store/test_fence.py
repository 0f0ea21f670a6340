"""A holder that is stopped right before a commit, and goes on after another took its lease, writes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict

import pyarrow as pa
import pytest

from kinodex.index.errors import LeaseLost
from kinodex.index.library import Library
from kinodex.index.maintain import health
from kinodex.index.remove import remove_videos
from kinodex.index.rows import SourceRow
from kinodex.index.store.database import Tables
from kinodex.index.store.filters import equal
from kinodex.index.store.leases import Pace, several_leases
from tests.support.libraries.random_library import WHEN, made, write

SLOW = Pace(beat_s=3600.0, patience_s=3600.0)
FILM, OTHER = made("aaaa", 3, seed=1), made("bbbb", 4, seed=2)


def seem_dead(library: Library) -> None:
    """Let the holder of the lease look like a process of this machine that has ended."""
    assert library.tables.update("leases", equal("name", "ingest"), {"process_start": 1}) == 1


@contextmanager
def taken_over(library: Library) -> Iterator[Library]:
    """Another run that takes the lease."""
    other = Library.open(library.uri)
    seem_dead(other)
    with other.lease("ingest", "the second run"):
        yield other


def test_a_film_that_was_removed_meanwhile_does_not_come_back(library: Library) -> None:
    write(library, FILM)
    with ExitStack() as runs:
        lease = runs.enter_context(library.lease("ingest", "the first run", SLOW))

        def stopped() -> None:
            lease.check()
            other = runs.enter_context(taken_over(library))
            other.writer.discard("aaaa")

        with pytest.raises(LeaseLost, match="the second run"):
            library.writer.show([FILM.video_row("a better title")], stopped)
    opened = Library.open(library.uri)
    assert opened.tables.rows("videos").num_rows == 0
    assert health(opened).problems == ()


COLUMN = pa.field("x", pa.string())
Write = Callable[[Tables, pa.Table], object]
WRITES: dict[str, Write] = {
    "append": lambda tables, rows: tables.append("sources", rows),
    "upsert": lambda tables, rows: tables.upsert("sources", ["uri"], rows),
    "insert": lambda tables, rows: tables.insert("sources", ["uri"], rows.to_pylist()),
    "update": lambda tables, rows: tables.update("sources", equal("uri", "/there"), {"stamp": "late"}),
    "delete": lambda tables, rows: tables.delete("sources", equal("uri", "/there")),
    "rewrite": lambda tables, rows: tables.rewrite("sources", lambda _: rows),
    "a column": lambda tables, rows: tables.commit(
        "sources", lambda newest: newest.add_columns(pa.field("x", pa.string()))
    ),
    "delete doubles": lambda tables, rows: tables.delete_doubles("sources", ["video_id"]),
}


@pytest.mark.parametrize("kind", WRITES)
def test_no_commit_passes_that_was_prepared_before_the_lease_was_lost(library: Library, kind: str) -> None:
    there = [SourceRow(uri, "aaaa", None, "", WHEN) for uri in ("/there", "/there too")]
    library.ingest_log.add_sources(there)
    before = library.tables.rows("sources")
    rows = pa.Table.from_pylist([asdict(SourceRow("/late", "aaaa", None, "", WHEN))], before.schema)
    with ExitStack() as runs:
        lease = runs.enter_context(library.lease("ingest", "the first run", SLOW))
        looks: list[str] = []

        def stopped_after_the_check() -> None:
            lease.check()
            looks.append(kind)
            runs.enter_context(taken_over(library))

        library.tables.guards["ingest"] = stopped_after_the_check
        with pytest.raises(LeaseLost, match="the second run"):
            WRITES[kind](library.tables, rows)
        assert looks == [kind]
        assert Library.open(library.uri).tables.rows("sources") == before
    with library.lease("ingest", "a third run"):
        WRITES[kind](library.tables, rows)
    assert Library.open(library.uri).tables.rows("sources") != before


def test_a_worker_of_a_run_that_lost_its_lease_appends_nothing(library: Library) -> None:
    write(library, FILM)
    with library.lease("ingest", "the first run", SLOW) as lease, taken_over(library):
        worker = Library.open(library.uri)
        worker.guard(lease.name, lease.token)
        with pytest.raises(LeaseLost):
            worker.writer.add_frames({"bbbb": OTHER.frame_rows()})
    assert health(Library.open(library.uri)).problems == ()


@pytest.mark.parametrize("names", [("ingest",), ("maintain", "ingest", "add captions")])
def test_a_worker_that_outlives_its_run_which_failed_appends_nothing(library: Library, names: Sequence[str]) -> None:
    worker = Library.open(library.uri)
    lease = library.lease("ingest", "the first run", SLOW)
    with ExitStack() as runs:
        lease.__enter__()
        worker.guard(lease.name, lease.token)
        check = worker.tables.guards["ingest"]

        def stopped_after_the_check() -> None:
            check()
            lease.__exit__(KeyError, KeyError(), None)
            runs.enter_context(several_leases(Library.open(library.uri).tables, names, "the second run"))

        worker.tables.guards["ingest"] = stopped_after_the_check
        with pytest.raises(LeaseLost, match="the second run"):
            worker.writer.add_frames({"bbbb": OTHER.frame_rows()})
    assert health(Library.open(library.uri)).problems == ()


def test_what_others_write_beside_a_takeover_is_kept(library: Library) -> None:
    write(library, FILM)
    columns = library.tables.schema("videos")
    indexes = library.tables["speech"].describe_indices()
    with library.lease("ingest", "the first run", SLOW), taken_over(library) as other:
        write(other, OTHER)
        other.metadata.write({"aaaa": {"camera": "front"}})
    opened = Library.open(library.uri)
    assert opened.video_ids() == {"aaaa", "bbbb"}
    assert opened.tables.schema("videos").equals(columns, check_metadata=True)
    assert [each.name for each in opened.tables["speech"].describe_indices()] == [each.name for each in indexes]
    remove_videos(opened, "aaaa")
    assert health(opened).problems == ()


def test_a_lease_that_nobody_lost_costs_no_commit_to_other_tables(library: Library) -> None:
    versions = [library.tables.version(name) for name in ("videos", "frames", "sources")]
    for _ in range(2):  # its first time makes the row, its second finds it released
        with library.lease("ingest", "a run", SLOW):
            assert [library.tables.version(name) for name in ("videos", "frames", "sources")] == versions
