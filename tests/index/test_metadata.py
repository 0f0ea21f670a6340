"""A library's own columns: typed, checked before they are written, found by conditions in SQL."""

from __future__ import annotations

import pickle
import shutil
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from kinodex.index.errors import LibraryError, MetadataConflict, QueryError, UnknownVideo
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
            "aaaa": {
                "camera": "front",
                "recorded_at": MARCH,
                "takes": 2,
                "tags": ["day", "rain"],
                "order": 1,
                "and": "p",
            },
            "bbbb": {"camera": "back's", "recorded_at": MAY, "takes": 5, "tags": ["rain"], "größe": "klein"},
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
        ("`camera` = 'back''s'", "b"),
        ("camera = '2026-03-01'", ""),
        ("camera IS NULL OR frames = 5", "bc"),
        ("NOT (camera = 'front')", "b"),  # of no camera nothing is known
        ("duration_s > 0 AND NOT camera LIKE 'f%'", "b"),
        ("array_has(tags, 'rain')", "ab"),
        ("order = 1", "a"),
        ('"and" = \'p\' AND "order" < 2', "a"),
        ("größe IS NULL", "ac"),
        ("lower(größe) IN ('klein', 'groß')", "b"),
        ("cast(takes AS string) = '5'", "b"),
        ("recorded_at >= '2026-03-01' AND takes BETWEEN 2 AND 4", "a"),
        ("recorded_at < '2026-05-01T00:00:01'", "ab"),
        ("recorded_at > timestamp '2026-03-02'", "b"),
        ("recorded_at = '2026-03-01 14:00+02:00'", "a"),
        ("'2026-03-01T07:00:01-05:00' > recorded_at AND camera = 'front'", "a"),
        ("recorded_at BETWEEN '2026-04-30T22:00-02:00' AND '2026-05-01'", "b"),
        ("date_part('year', recorded_at) = 2026", "ab"),
    ):
        assert sorted(library.metadata.matching(condition)) == [letter * 4 for letter in found], condition


def test_a_condition_that_is_no_lone_expression_over_the_columns_is_an_error_of_one_line(folder):
    library = Library.open(str(folder))
    for condition, says in (
        ("camra = 'x'", "there is no column camra; did you mean camera\\?; the columns are title, uri, duration_s"),
        ("GROSSE = 1", "no column GROSSE; did you mean größe"),
        ('camera = "front"', "no column front, which is what stands in double quotes \\(a text stands in 'single"),
        ("camera = 'front' LIMIT 1", "no column LIMIT"),
        ("camera = 'front'; DROP TABLE videos", "; in it; give one expression"),
        ("camera = 'front' -- AND takes > 3", "-- in it"),
        ("true /* all */", "/\\* in it"),
        ("true) OR (true", "its brackets do not match"),
        ("camera = 'front", "a ' that has no end"),
        ("_rowid = 0", "no column _rowid"),
        ("takes = (SELECT 1)", "no column SELECT"),
        ("no_such(camera)", "no_such is no function of conditions, which are abs"),
        ("takes > 'many'", "could not convert"),
        ("recorded_at > 'soon'", "could not convert"),
        ("camera", "does not return a boolean"),
        ("camera = ", "sql parser error"),
        (" ", "an empty condition"),
        ("takes > 100", "0 of 3 videos match; `kinodex info` shows"),
    ):
        with pytest.raises(QueryError, match=says) as caught:
            library.where(condition)
        assert "\n" not in str(caught.value) and ".rs:" not in str(caught.value)


def test_a_library_of_a_condition_shows_its_videos_alone_and_follows_what_changes(films):
    films.metadata.write({"cccc": {"takes": 9}})
    view = films.where("takes > 1").where("takes != 9")
    again: Library = pickle.loads(pickle.dumps(view))
    for each in (view, again):
        assert [row.video_id for row in each.videos()] == ["aaaa", "bbbb"]
        assert (each.video_ids(), each.count_videos()) == ({"aaaa", "bbbb"}, 2)
        assert sorted(each.video_columns(["frames"])["frames"].to_pylist()) == [4, 5]
        assert (each.info().videos, each.info().frames, films.info().frames) == (2, 9, 15)
        assert [row.video_id for row in each.videos_named(["b*", "a*"])] == ["bbbb", "aaaa"]
        assert not each.has_video("cccc")
        with pytest.raises(UnknownVideo, match=r"cccc.*no others are seen than those for which .*takes > 1.* holds"):
            each.video("cccc")
        with pytest.raises(LibraryError, match="can be read only"):
            each.lease("add", "a run")
    films.metadata.write({"bbbb": {"takes": 9}})
    assert [row.video_id for row in view.videos()] == ["aaaa"]
    assert films.where(None) is films
    assert [row.video_id for row in films.select(["b*", "a*"], "takes > 1") or ()] == ["bbbb", "aaaa"]
    assert films.select() is None


@pytest.mark.parametrize("named", [(), ("a*", "b*", "c*")])
def test_what_columns_hold_is_counted_among_the_videos_of_a_condition(films, named):
    films.metadata.write({"cccc": {"camera": "front"}})
    facets = {facet.name: facet for facet in films.metadata.facets(films.ids_named(named))}
    assert facets["camera"].values == (("front", 2), ("back's", 1)) and facets["camera"].missing == 0
    assert facets["tags"].values == (("rain", 2), ("day", 1)) and facets["tags"].missing == 1
    assert (facets["takes"].least, facets["takes"].most, facets["takes"].values) == (2, 5, ())
    assert (facets["recorded_at"].least, facets["recorded_at"].most) == (MARCH, MAY)
    assert (facets["duration_s"].least, facets["duration_s"].most) == (4.0, 6.0)
    only = films.where("camera = 'front'").video_ids()
    assert {facet.name: facet.values for facet in films.metadata.facets(only)}["camera"] == (("front", 2),)


@pytest.mark.slow
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
            "order": 1,
            "and": "p",
            "day": datetime(2026, 3, 1, tzinfo=UTC),
        },
        "cccc": {"takes": 1.0},
    }
    assert again.metadata.columns()["takes"] == pa.float64()
    before = metadata.of(["aaaa", "bbbb", "cccc"])
    for rows, says in (
        ({"cccc": {"takes": 3, "camera": 7}}, "got 7 for camera of Third, and Second has \"back's\"|First has 'front'"),
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
    films.metadata.drop(["takes"])
    with pytest.raises(QueryError, match="no column takes"):
        films.where("takes > 1")
    films.writer.discard("aaaa")
    assert films.metadata.of(["aaaa", "bbbb"]).keys() == {"bbbb"}
    assert films.metadata.matching("camera IS NOT NULL") == {"bbbb"}
    assert not audit(films).problems
