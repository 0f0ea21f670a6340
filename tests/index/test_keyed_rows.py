"""Rows that belong to no digest of a video or an addition: altered ones and second ones are found and mended.

And columns that somebody adds to a table of the library: they make nothing altered.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kinodex.index.errors import MetadataConflict
from kinodex.index.library import Library
from kinodex.index.maintain import health, maintain
from kinodex.index.repair import repair
from kinodex.index.rows import FailureRow, NoteRow, RunRow, SourceRow
from kinodex.index.sql import query
from kinodex.index.store.filters import equal
from kinodex.index.store.schema import ROW_DIGEST
from tests.support.command import Kinodex, runner
from tests.support.libraries.random_library import (
    SETTINGS,
    WHEN,
    add_stage,
    caption,
    detection,
    made,
    unit_vectors,
    write,
)

FILM, OTHER = made("aaaa", 4, seed=1, lines=((0.0, 1.0, "hello"), (1.0, 2.0, "hello"))), made("bbbb", 3, seed=2)


class Voice:
    vector = np.eye(256, dtype=np.float32)[0]
    seconds = 5.0


@pytest.fixture
def filled(library: Library) -> Library:
    """Two videos, and rows in every table that has a key."""
    for video in (FILM, OTHER):
        write(library, video)
    library.ingest_log.add_sources([SourceRow("/a", "aaaa", 7, "stamp", WHEN, "/"), SourceRow("/b", "", 8, "", WHEN)])
    library.ingest_log.add_failures([FailureRow("/b", "decode", "VideoError", "broken", 1, WHEN)])
    library.ingest_log.add_run(RunRow("run", "ingest", "done", WHEN, WHEN, {"videos": 2}))
    library.metadata.write({"aaaa": {"camera": "front", "floor": 3}, "bbbb": {"camera": "rear"}})
    library.notes.add([NoteRow("aaaa", "m", 0.0, 1.0, "a kite", 0.5, 2)])
    library.speakers.match([Voice()], "m", 0.5)
    library.speakers.name(["speaker-1"], "Ada")
    add_stage(library, "captions", "m", {"aaaa": [caption(0, "a kite", unit_vectors(1, 3)[0])]})
    add_stage(library, "detections", "m", {"aaaa": [detection(0, "kite", 0.5)]})
    return library


def other(value: Any) -> Any:
    """Another value of the same type."""
    match value:
        case str():
            return value[:-1] + ("x" if value[-1:] != "x" else "y")
        case datetime():
            return value + timedelta(microseconds=1)
        case list():
            return [*value[:-1], value[-1] + 1.0]
        case _:
            return value + 1


def alter(library: Library, name: str, column: str) -> None:
    """Change a value of the first row that has one, as no writer of the library does."""
    rows = library.tables[name].to_table()
    values = rows[column].to_pylist()
    at = next(number for number, value in enumerate(values) if value is not None)
    values[at] = other(values[at])
    field = rows.schema.field(column)
    changed = rows.set_column(rows.schema.get_field_index(column), field, pa.array(values, field.type))
    library.tables.rewrite(name, lambda _: changed)


ALTERED = {
    "sources": ("uri", "video_id", "size_bytes", "stamp", "seen_at", "mount"),
    "failures": ("uri", "stage", "error_class", "message", "attempts", "failed_at"),
    "runs": ("run_id", "kind", "state", "started_at", "ended_at", "report"),
    "metadata": ("video_id", "camera", "floor"),
    "notes": ("video_id", "model", "part", "start_s", "end_s", "text", "confidence", "frames"),
    "speakers": ("speaker", "name", "vector", "seconds", "model"),
}


def put_back(library: Library, name: str, rows: pa.Table) -> None:
    library.tables.rewrite(name, lambda _: rows)


def test_every_value_of_a_row_that_is_another_is_found(filled: Library) -> None:
    """A column of each table at once."""
    assert health(filled).problems == ()
    for name, columns in ALTERED.items():
        assert {*columns, ROW_DIGEST} == {*filled.tables.schema(name).names}, "each column is tried"
    before = {name: filled.tables[name].to_table() for name in ALTERED}
    for number in range(max(map(len, ALTERED.values()))):
        altered = {name: columns[number] for name, columns in ALTERED.items() if number < len(columns)}
        for name, column in altered.items():
            alter(filled, name, column)
        found = [each.rpartition(" has other values than were written in ") for each in health(filled).problems]
        assert sorted(name for _, said, name in found if said) == sorted(altered), altered
        for name in altered:
            put_back(filled, name, before[name])
    assert health(filled).problems == ()


def test_a_changed_byte_is_found_and_goes_on_request_without_the_film(
    filled: Library, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kinodex: Kinodex = runner(monkeypatch, capsys)
    assert kinodex("maintain", filled.uri, "--check", "--deep").code == 0
    changed = 0
    for path in Path(filled.uri, "metadata.lance", "data").iterdir():
        content = path.read_bytes()
        changed += content.count(b"front")
        path.write_bytes(content.replace(b"front", b"frost"))
    assert changed
    checked = kinodex("maintain", filled.uri, "--check", "--deep")
    assert checked.code == 3
    assert "the row of 'aaaa' has other values than were written in metadata" in checked.out
    assert "--discard-broken" in checked.out
    done = kinodex("maintain", filled.uri, "--deep", "--discard-broken")
    assert (done.code, "removed: altered rows of metadata: 1" in done.out) == (0, True)
    opened = Library.open(filled.uri)
    assert opened.video_ids() == {"aaaa", "bbbb"}
    assert opened.metadata.of(["aaaa", "bbbb"]) == {"bbbb": {"camera": "rear"}}


def test_metadata_that_was_altered_shows_it_whatever_is_set_later(filled: Library) -> None:
    alter(filled, "metadata", "camera")
    filled.metadata.write({"aaaa": {"floor": 2.5}, "bbbb": {"day": "monday"}})
    filled.metadata.drop(["day"])
    problems = health(filled).problems
    assert problems == ("the row of 'aaaa' has other values than were written in metadata",)
    with pytest.raises(MetadataConflict, match="row_digest"):
        filled.metadata.write({"aaaa": {"row_digest": "x"}})
    assert [*filled.metadata.columns()] == ["camera", "floor"]
    for table in ("videos", "failures"):
        assert ROW_DIGEST not in query(filled, f"SELECT * FROM {table}").to_arrow_table().column_names


# Columns that somebody adds.


def test_a_column_that_somebody_adds_makes_nothing_altered(filled: Library) -> None:
    names = [name for name in filled.tables.names() if name != "leases"]
    for name in names:
        filled.tables.commit(name, lambda newest: newest.add_columns([pa.field("note", pa.string())]))
        filled.tables.commit(name, lambda newest: newest.update({"note": "'mine'"}))
    opened = Library.open(filled.uri)
    assert health(opened, deep=True).problems == ()
    write(opened, made("cccc", 2, seed=3))
    opened.writer.readdress({"aaaa": ("/elsewhere/a.mp4", "a")})
    opened.metadata.write({"aaaa": {"camera": "side", "day": "monday"}})
    opened.ingest_log.add_sources([SourceRow("/c", "cccc", 7, "stamp", WHEN, "/")])
    done = maintain(opened, discard_broken=True, deep=True)
    assert (done.removed.altered, done.removed.added.broken, done.removed.keyed) == ((), (), ())
    assert done.after.problems == ()
    assert opened.video_ids() == {"aaaa", "bbbb", "cccc"}
    notes = opened.tables.rows("videos", equal("video_id", "aaaa"), ["note"])["note"].to_pylist()
    assert notes == ["mine"]
    alter(opened, "videos", "title")
    assert len(health(opened).problems) == 1


# Rows that stand twice.


def doubled(library: Library, names: tuple[str, ...]) -> None:
    for name in names:
        library.tables.append(name, library.tables[name].to_table())


MENDERS: dict[str, Callable[[Library], object]] = {
    "maintain": maintain,
    "repair": lambda library: repair(library.uri, SETTINGS, lambda uri, video_id: None),
}


@pytest.mark.parametrize("mender", MENDERS)
def test_rows_that_stand_twice_are_found_and_mended(filled: Library, mender: str) -> None:
    of_films = ("videos", "frames", filled.vectors_table, "segments", "speech")
    before = {name: filled.tables.count(name) for name in of_films}
    doubled(filled, of_films)
    problems = health(filled).problems
    assert {each for each in problems if "videos" in each} == {
        "the row of 'aaaa' stands twice in videos",
        "the row of 'bbbb' stands twice in videos",
    }
    assert {each for each in problems if "rows twice" in each} == {
        f"video {id_} has rows twice" for id_ in ("aaaa", "bbbb")
    }
    MENDERS[mender](filled)
    opened = Library.open(filled.uri)
    assert {name: opened.tables.count(name) for name in of_films} == before
    assert health(opened, deep=True).problems == ()


def test_second_rows_of_every_table_with_a_key_are_found_and_go(filled: Library) -> None:
    names = ("additions", *ALTERED)
    before = {name: filled.tables[name].to_table().to_pylist() for name in names}
    doubled(filled, names)
    assert {each.rpartition(" ")[2] for each in health(filled).problems if "stands twice" in each} == {*names}
    done = maintain(filled)
    assert {each.table for each in done.removed.keyed} == {*names}
    assert done.after.problems == ()
    assert {name: filled.tables[name].to_table().to_pylist() for name in names} == before
