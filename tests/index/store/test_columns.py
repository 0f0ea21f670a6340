"""A table that lacks a column, has one of another type, or one that no writer fills: nothing is written anywhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa
import pytest

from kinodex.index.errors import LibraryDamaged
from kinodex.index.library import Library
from kinodex.index.maintain import maintain
from kinodex.index.remove import remove_added, remove_videos
from kinodex.index.repair import repair
from kinodex.index.rows import FailureRow, NoteRow, SourceRow
from kinodex.index.store.database import Tables
from kinodex.index.store.schema import LATE_TABLES, table_schemas
from tests.support.command import bad, runner
from tests.support.libraries.random_library import (
    SETTINGS,
    WHEN,
    add_stage,
    caption,
    detection,
    fingerprint,
    made,
    unit_vectors,
    write,
)

NEW = made("bbbb", 3, seed=2, lines=((0.0, 1.0, "hello"),))
OWN = table_schemas(SETTINGS, fingerprint())


@pytest.fixture
def filled(library: Library) -> Library:
    write(library, made("aaaa", 3, seed=1, lines=((0.0, 1.0, "hello"),)))
    add_stage(library, "captions", "m", {"aaaa": [caption(0, "a kite", unit_vectors(1, 3)[0])]})
    add_stage(library, "detections", "m", {"aaaa": [detection(0, "kite", 0.5)]})
    library.notes.add([NoteRow("aaaa", "m", 0.0, 1.0, "a kite", 0.5, 2)])
    library.metadata.write({"aaaa": {"camera": "front"}})
    return library


def ingest(library: Library) -> None:
    with library.lease("ingest", "a run"):
        write(library, NEW)


WRITERS: Mapping[str, Callable[[Library], object]] = {
    "ingest": ingest,
    "frames": lambda library: library.writer.add_frames({"bbbb": NEW.frame_rows()}),
    "sources": lambda library: library.ingest_log.add_sources([SourceRow("/a", "aaaa", None, "", WHEN)]),
    "failures": lambda library: library.ingest_log.add_failures([FailureRow("/a", "x", "X", "no", 1, WHEN)]),
    "captions": lambda library: library.additions.add_captions({"aaaa": [caption(0, "b")]}, "other"),
    "notes": lambda library: library.notes.add([NoteRow("aaaa", "m", 1.0, 2.0, "a dog", 0.5, 2)]),
    "metadata": lambda library: library.metadata.write({"aaaa": {"camera": "rear"}}),
    "remove": lambda library: remove_videos(library, "aaaa"),
    "remove added": lambda library: remove_added(library, "captions", "m", "aaaa"),
    "maintain": maintain,
    "repair": lambda library: repair(library.uri, SETTINGS, lambda uri, video_id: None),
}


def states(uri: str) -> dict[str, int]:
    tables = Tables(uri)
    return {name: tables.version(name) for name in tables.names()}


def refused(uri: str, says: str) -> None:
    """Let every writer try; none may commit anything."""
    before = states(uri)
    for name, writer in WRITERS.items():
        with pytest.raises(LibraryDamaged, match=says):
            writer(Library.open(uri))
        assert states(uri) == before, name


REQUIRED = [
    (name, column)
    for name, schema in {**OWN, "notes": LATE_TABLES["notes"]}.items()
    for column in schema.names
    if name != "videos"
]


def drop(tables: Tables, name: str, column: str) -> None:
    tables.commit(name, lambda newest: newest.drop_columns([column]))


def test_a_column_that_was_dropped(filled: Library) -> None:
    for name, column in REQUIRED:
        before = filled.tables[name].version
        raw = Tables(filled.uri)
        drop(raw, name, column)
        with pytest.raises(LibraryDamaged, match=f"the table {name} of .*: .*it has no column {column}"):
            ingest(Library.open(filled.uri))
        assert Library.open(filled.uri).tables.version("videos") == filled.tables.version("videos")
        raw[name].checkout_version(before).restore()


@pytest.mark.parametrize("name, column", [("frames", "jpeg"), ("speech", "text"), ("additions", "model")])
def test_every_writer_refuses_before_it_writes(filled: Library, name: str, column: str) -> None:
    drop(Tables(filled.uri), name, column)
    refused(filled.uri, f"it has no column {column}")


def test_a_column_of_another_type(filled: Library) -> None:
    def numbers(rows: pa.Table) -> pa.Table:
        place = rows.schema.get_field_index("kind")
        return rows.set_column(place, "kind", pa.array(range(rows.num_rows), pa.int64()))

    Tables(filled.uri).rewrite("segments", numbers)
    refused(filled.uri, "its column kind is of type int64, not string")


def test_a_column_that_may_hold_no_null(filled: Library) -> None:
    Tables(filled.uri).commit("frames", lambda newest: newest.add_columns({"note": "'mine'"}))
    refused(filled.uri, "somebody added the column note, which may hold no null")
    assert len(Library.open(filled.uri).frames("aaaa", [0])) == 1


def test_the_command_line_says_so_with_exit_code_4(
    filled: Library, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kinodex = runner(monkeypatch, capsys)
    drop(Tables(filled.uri), "speech", "text")
    for command in (
        ("search", "{}", "hello", "--in", "speech"),
        ("maintain", "{}"),
        ("remove", "videos", "{}", "aaaa", "--yes"),
    ):
        bad(kinodex, *(each.format(filled.uri) for each in command), code=4, says="it has no column text")
