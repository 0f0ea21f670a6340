"""A library's own columns: typed, checked before they are written, found by conditions in SQL."""

from __future__ import annotations

import shutil
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from kinodex.index.errors import MetadataConflict, QueryError
from kinodex.index.library import Library
from kinodex.index.sweep import audit
from tests.support.libraries.random_library import SETTINGS, empty_library, fingerprint, made, write

MARCH, MAY = datetime(2026, 3, 1, 12, tzinfo=UTC), datetime(2026, 5, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = empty_library(tmp_path_factory.mktemp("metadata") / "library", SETTINGS, fingerprint())
    for number, video_id in enumerate(("aaaa", "bbbb", "cccc")):
        write(library, made(video_id, 4 + number, seed=number))
    library.metadata.write(
        {
            "aaaa": {"camera": "front", "recorded_at": MARCH, "takes": 2, "tags": ["day", "rain"]},
            "bbbb": {"camera": "back", "recorded_at": MAY, "takes": 5, "tags": ["rain"]},
        }
    )
    return Path(library.uri)


@pytest.fixture
def films(folder: Path, tmp_path: Path) -> Library:
    return Library.open(str(shutil.copytree(folder, tmp_path / "library")))


def test_a_condition_finds_videos_by_own_columns_and_by_those_of_every_library(folder):
    library = Library.open(str(folder))
    for condition, found in (
        ("camera = 'front'", "a"),
        ("Camera != 'front'", "b"),
        ("recorded_at >= '2026-03-01' AND takes BETWEEN 2 AND 4", "a"),
        ("recorded_at < '2026-05-01T00:00:01'", "ab"),
        ("recorded_at > timestamp '2026-03-02'", "b"),
        ("array_has(tags, 'rain')", "ab"),
        ("camera IS NULL OR frames = 5", "bc"),
        ("duration_s > 0 AND NOT camera LIKE 'f%'", "b"),
        ("camera = '2026-03-01'", ""),
        ("true) OR (true", "abc"),
    ):
        assert sorted(library.metadata.matching(condition)) == [letter * 4 for letter in found], condition


def test_a_condition_that_cannot_be_run_is_an_error_of_one_line(folder):
    library = Library.open(str(folder))
    for condition, says in (
        ("camra = 'x'", "there is no column camra; did you mean camera\\?; the columns are title, uri, duration_s"),
        ("takes > 'many'", "could not convert"),
        ("recorded_at > 'soon'", "could not convert"),
        ("camera", "does not return a boolean"),
        ("camera = ", "sql parser error"),
        ("x = (SELECT 1)", "not supported"),
    ):
        with pytest.raises(QueryError, match=says) as caught:
            library.select(where=condition)
        assert "\n" not in str(caught.value) and ".rs:" not in str(caught.value)


def test_values_are_joined_and_columns_widen_but_never_change_their_kind(films):
    metadata = films.metadata
    metadata.write({"aaaa": {"takes": 2.5, "day": date(2026, 3, 1), "camera": None}, "cccc": {"takes": 1}})
    metadata.write({"bbbb": {"day": MAY}})
    again = Library.open(films.uri)
    assert again.metadata.of(["aaaa", "cccc", "dddd"]) == {
        "aaaa": {
            "camera": "front",
            "recorded_at": MARCH,
            "takes": 2.5,
            "tags": ["day", "rain"],
            "day": datetime(2026, 3, 1, tzinfo=UTC),
        },
        "cccc": {"takes": 1.0},
    }
    assert again.metadata.columns()["takes"] == pa.float64()
    before = metadata.of(["aaaa", "bbbb", "cccc"])
    for rows, says in (
        ({"cccc": {"takes": 3, "camera": 7}}, "got 7 for camera of Third, and Second has 'back'|First has 'front'"),
        ({"aaaa": {"new": 1}, "bbbb": {"new": "x"}}, "got 'x' for new of Second, and First has 1"),
        ({"aaaa": {"title": "x"}}, "which every library has itself"),
        ({"aaaa": {"Big Name": 1}}, "small letters"),
        ({"aaaa": {"size": {"w": 1}}}, "give a number, a text, a time"),
        ({"aaaa": {"size": 2**70}}, "no column can hold"),
    ):
        with pytest.raises(MetadataConflict, match=says):
            metadata.write(rows, {"aaaa": "First", "bbbb": "Second", "cccc": "Third"})
    assert metadata.of(["aaaa", "bbbb", "cccc"]) == before


def test_columns_go_by_name_and_rows_with_their_video_and_a_check_is_clean(films):
    assert [row.video_id for row in films.select(["b*", "a*"], "takes > 1")] == ["aaaa", "bbbb"]
    assert films.select() is None
    with pytest.raises(QueryError, match="holds for no video"):
        films.select(["cccc"], "takes > 1")
    films.metadata.drop(["takes"])
    with pytest.raises(QueryError, match="no column takes"):
        films.select(where="takes > 1")
    films.writer.discard("aaaa")
    assert films.metadata.of(["aaaa", "bbbb"]).keys() == {"bbbb"}
    assert films.metadata.matching("camera IS NOT NULL") == ["bbbb"]
    assert not audit(films).problems
