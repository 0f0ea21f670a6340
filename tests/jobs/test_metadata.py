"""Columns from tables, paths and files: which videos a row names, how texts are typed, what an ingest and `set` say."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from kinodex.index.errors import MetadataConflict
from kinodex.index.library import Library
from kinodex.index.metadata import MOST_COLUMNS
from kinodex.jobs.errors import UsageError
from kinodex.jobs.metadata.input import read_metadata
from kinodex.jobs.metadata.update import set_metadata
from kinodex.pipeline.decoding.tags import known_tags
from tests.support.command import bad
from tests.support.ffmpeg import ffmpeg, needs_ffmpeg
from tests.support.libraries.random_library import SETTINGS, empty_library, fingerprint, made, write
from tests.world.drawn_space import DRAWN

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
ADDRESSES = {
    "aaaa": "/films/front/2026-03-01/one.mp4",
    "bbbb": "/films/back/2026-03-02/two.mp4",
    "cccc": "s3://bucket/back/2026-03-03/two.mp4",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = empty_library(tmp_path_factory.mktemp("named") / "library", SETTINGS, fingerprint())
    for number, video_id in enumerate(ADDRESSES):
        write(library, made(video_id, 4, seed=number))
    library.writer.readdress({id_: (uri, f"film {id_}") for id_, uri in ADDRESSES.items()})
    return Path(library.uri)


@pytest.fixture
def library(folder: Path, tmp_path: Path) -> Library:
    return Library.open(str(shutil.copytree(folder, tmp_path / "library")))


def test_rows_name_videos_in_every_way_and_what_fits_none_or_several_is_said(library, tmp_path):
    table = tmp_path / "own.csv"
    names = ("aaaa", ADDRESSES["bbbb"], ADDRESSES["cccc"], "one.mp4", "one", "film bbbb", "back/2026-03-02/two.mp4")
    table.write_text("name,n\n" + "".join(f"{name},{n}\n" for n, name in enumerate((*names, "two", "three", ""))))
    report = set_metadata(library, read_metadata([table]))
    assert library.metadata.of([*ADDRESSES]) == {"aaaa": {"n": 4}, "bbbb": {"n": 6}, "cccc": {"n": 2}}
    assert (report.videos, report.columns) == (3, {"n": "int64"})
    assert report.ambiguous == (f"{table}: row 8 ('two' is the name of 2 videos)",)
    assert report.unmatched == (f"{table}: row 9 ('three')",)
    table.write_text("pattern\tcamera\nback/.*two\tB\n/front/\tF\n")
    set_metadata(
        library, read_metadata([table.rename(table.with_suffix(".tsv"))]), library.videos_named(["aaaa", "bbbb"])
    )
    assert library.metadata.matching("camera = 'B'") == {"bbbb"}


def test_texts_of_a_column_are_typed_together_and_files_with_types_keep_theirs(library, tmp_path):
    table = tmp_path / "typed.csv"
    table.write_text(
        "id,Shot on,at,count,ratio,good,code,mixed\n"
        "aaaa,2026-03-01,2026-03-01T12:00:00Z,7,.5,true,007,1\n"
        "bbbb,2026-03-02,2026-03-01 13:00+01:00, ,1e3,False,008,x\n"
    )
    set_metadata(library, read_metadata([table]))
    found = library.metadata.of(["aaaa", "bbbb"])
    assert found["aaaa"] == {
        "shot_on": date(2026, 3, 1),
        "at": NOON,
        "count": 7,
        "ratio": 0.5,
        "good": True,
        "code": "007",
        "mixed": "1",
    }
    assert found["bbbb"]["at"] == NOON and "count" not in found["bbbb"]
    lines = tmp_path / "typed.jsonl"
    lines.write_text(
        json.dumps({"uri": "one.mp4", "text": "7", "day": "2026-03-01", "tags": ["a"], "title": "no column"})
    )
    parquet = tmp_path / "typed.parquet"
    pa.parquet.write_table(pa.table({"stem": ["one"], "big": pa.array([1.5], pa.float64())}), parquet)
    set_metadata(library, read_metadata([lines, parquet]))
    assert library.metadata.of(["aaaa"])["aaaa"].items() >= {"text": "7", "day": date(2026, 3, 1), "big": 1.5}.items()


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("a.txt", "", "its name must end in .csv"),
        ("a.csv", "name,x\n", "no rows"),
        ("a.csv", "camera,x\n1,2\n", "none of which names videos; call one of them one of pattern, uri"),
        ("a.csv", "name,duration s\none,2\n", "a column duration s, which every library has itself"),
        ("a.csv", "pattern,x\n(,2\n", "row 1: got the pattern '\\(', which is no regular expression"),
        ("a.jsonl", "[1]\n", "row 1 is no object"),
        ("a.jsonl", "{\n", "cannot be read"),
        ("a.jsonl", "[" * 100_000, "nested more than"),
        ("a.jsonl", '{"video": "a", "gain": NaN}', "NaN is no number"),
        ("a.csv", "video,Shot on,shot_on\na,1,2\n", "'Shot on' and 'shot_on', which are both shot_on in SQL"),
        ("a.csv", "video,gain,gain\na,1,2\n", "two columns 'gain'"),
        ("a.parquet", "no parquet", "cannot be read"),
    ],
)
def test_a_table_that_cannot_be_read_is_an_error_that_says_what_to_do(tmp_path, name, text, says):
    (tmp_path / name).write_text(text)
    with pytest.raises(UsageError, match=says):
        read_metadata([tmp_path / name])


def test_a_pattern_without_an_end_is_an_error(library, tmp_path):
    table = tmp_path / "patterns.csv"
    table.write_text("pattern,x\n^((.|..|...)+(.|..|...)+(.|..|...)+(.|..|...)+)+(?=[!?]),2\n")
    with pytest.raises(UsageError, match=r"row 1: got the pattern .* does not come to an end"):
        set_metadata(library, read_metadata([table]))


def test_a_library_has_a_limit_of_columns(library, tmp_path):
    names = [f"c{number}" for number in range(MOST_COLUMNS + 1)]
    (tmp_path / "a.csv").write_text(f"video,{','.join(names)}\n{library.videos()[0].video_id},{','.join(names)}\n")
    with pytest.raises(MetadataConflict, match="501 columns, which makes 501; give 500 at most"):
        set_metadata(library, read_metadata([tmp_path / "a.csv"], None))


def test_half_of_a_character_is_no_value(library, tmp_path):
    table = tmp_path / "half.jsonl"
    table.write_text('{"name": "one", "x": "\\ud800"}\n')
    with pytest.raises(MetadataConflict, match="which no column can hold"):
        set_metadata(library, read_metadata([table]))


def test_paths_give_columns_and_a_wrong_pattern_names_the_part(library):
    report = set_metadata(library, read_metadata(path_pattern="{camera}/{day}/{_}"))
    assert report.columns == {"camera": "string", "day": "date32[day]"}
    assert sorted(library.metadata.matching("camera = 'back' AND day > '2026-03-02'")) == ["cccc"]
    for pattern in ("films/x", "{Camera}/{_}", "{title}/{_}", "{a}/{a}"):
        with pytest.raises(UsageError, match="got --path-pattern"):
            read_metadata(path_pattern=pattern)


def test_tags_of_containers_come_under_one_name_each():
    assert known_tags(
        {
            "com.apple.quicktime.location.ISO6709": "+48.2-016.3/",
            "creation_time": "2026-03-01T12:00:00.000000Z",
            "TITLE": "x ",
        }
    ) == {"recorded_at": NOON, "place": "+48.2-016.3/", "latitude": 48.2, "longitude": -16.3, "work_title": "x"}
    for text, place in (
        ("+4851.5+00217.7/", (48 + 51.5 / 60, 2 + 17.7 / 60)),
        ("-335230.6+1511235.25+058/", (-33 - 52 / 60 - 30.6 / 3600, 151 + 12 / 60 + 35.25 / 3600)),
        ("+48.8577+002.295/", (48.8577, 2.295)),
        ("+48.8577-2.5", (48.8577, -2.5)),
        ("+00-000", (0.0, 0.0)),
        ("+4861.0+00217.7/", None),
        ("+91+002/", None),
        ("+48-18001/", None),
        ("+485+002/", None),
        ("+48.1.2+002/", None),
    ):
        read = known_tags({"location": text})
        expected = {} if place is None else {"latitude": pytest.approx(place[0]), "longitude": pytest.approx(place[1])}
        assert read == {"place": text, **expected}, text
    assert known_tags({"creation_time": "1904-01-01T00:00:00Z", "date": "2019", "comment": "drawn"}) == {}


@pytest.mark.slow
def test_an_ingest_sets_columns_and_set_metadata_does_so_later_without_reading(kinodex, films, tmp_path):
    folder = tmp_path / "front"
    folder.mkdir()
    for number in (1, 2):
        (folder / f"{number}.mp4").symlink_to(films / f"film-0{number}.mp4")
    (folder / "2.info.json").write_text("[" * 100_000)
    (folder / "1.info.json").write_text(json.dumps({"uploader": "ann", "upload_date": "20260301", "tags": "no list"}))
    manifest, library = tmp_path / "films.csv", tmp_path / "library"
    manifest.write_text("uri,title,takes\nfront/1.mp4,One,2\nfront/2.mp4,Two,3\n")
    ran = kinodex("ingest", manifest, "--library", library, "--space", DRAWN, "--path-pattern", "{camera}/{_}")
    assert "metadata of 2 videos; columns: " in ran.out and ran.code == 0
    opened = Library.open(str(library))
    one = opened.video("One").video_id
    kept = {"uploader": "ann", "upload_date": date(2026, 3, 1), "camera": "front", "takes": 2}
    assert opened.metadata.of([one]) == {one: kept}
    assert [row.title for row in opened.where("takes > 2").videos()] == ["Two"]

    later = tmp_path / "later.jsonl"
    later.write_text('{"title": "One", "takes": 2.5}\n{"title": "Nobody", "takes": 4}\n')
    ran = kinodex("set", "metadata", library, later, "--drop", "camera")
    assert (ran.code, "1 rows name no video: " in ran.out, "camera" in ran.out) == (3, True, False)
    assert opened.metadata.of([one])[one]["takes"] == 2.5
    later.write_text('{"title": "One", "takes": "many"}')
    ran = kinodex("set", "metadata", library, later)
    assert "got 'many' for takes of One, and " in ran.error_line and ran.code == 2
    bad(kinodex, "ingest", folder, "--library", library, "--metadata", later, code=2, says="got 'many' for takes of")
    bad(kinodex, "set", "metadata", library, code=2, says="got nothing to set")
    assert kinodex("set", "metadata", library, "--from-files", "--json").code == 0


@needs_ffmpeg
@pytest.mark.slow
def test_of_several_cameras_in_a_file_the_others_are_named(kinodex, tmp_path):
    film, library = tmp_path / "two.mkv", tmp_path / "library"
    cameras = ("-f", "lavfi", "-i", "testsrc=s=160x120:r=5:d=2", "-f", "lavfi", "-i", "color=red:s=320x180:r=5:d=2")
    ffmpeg(*cameras, "-map", "0", "-map", "1", "-c:v", "libx264", film)
    ran = kinodex("ingest", film, "--library", library, "--space", DRAWN, "--json")
    (outcome,) = json.loads(ran.out)["sources"]
    assert "not stream 1 (320x180 h264)" in outcome["problem"] and ran.code == 0
    assert "other_streams (string): stream 1 (320x180 h264) 1" in kinodex("info", library).out
    assert json.loads(kinodex("info", library, "--json").out)["failures"] == []
    opened = Library.open(str(library))
    assert len(opened.metadata.matching("other_streams IS NOT NULL")) == 1
    assert set_metadata(opened, read_metadata([]), opened.videos(), from_files=True).videos == 1
