"""Films that were moved, renamed, copied or swapped: an ingest knows them by their bytes; real files and servers."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kinodex import open as open_library
from kinodex.index.library import Library
from kinodex.index.sweep import audit
from kinodex.jobs.export.video_files import video_file
from kinodex.jobs.ingest.config import IngestConfig
from kinodex.jobs.ingest.reports import IngestReport
from kinodex.jobs.ingest.run import run_ingest
from kinodex.pipeline.places import Place, look
from kinodex.pipeline.source import Source
from kinodex.pipeline.sources import list_sources
from tests.support.command import bad, json_of
from tests.support.servers.files import serve_folder
from tests.world.drawn_space import DRAWN

BOOK, CLIP = "intel__book.mkv", "moviepy__clip1024.flv"


def run(library: Path, *places: str) -> IngestReport:
    return run_ingest(IngestConfig(space=DRAWN, workers=1), list_sources(places), str(library))


def rename_and_copy(films: Path) -> None:
    for suffix in (".mkv", ".srt"):
        (films / f"a{suffix}").rename(films / f"x{suffix}")
    shutil.copy(films / "x.mkv", films / "y.mkv")
    shutil.copy(films / "b.flv", films / "0.flv")


def swap(films: Path) -> None:
    (films / "a.mkv").rename(films / "hold")
    (films / "b.flv").rename(films / "a.mkv")
    (films / "hold").rename(films / "b.flv")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "states", "addresses"),
    [
        (rename_and_copy, {"moved": 1, "already there": 2}, {"x.mkv", "b.flv"}),
        (swap, {"moved": 2}, {"a.mkv", "b.flv"}),
    ],
)
def test_an_ingest_follows_moved_films_decodes_nothing_and_keeps_copies(
    media: Path, tmp_path: Path, change: Callable[[Path], object], states: dict[str, int], addresses: set[str]
) -> None:
    films, place = tmp_path / "films", tmp_path / "library"
    films.mkdir()
    shutil.copy(media / "clips" / BOOK, films / "a.mkv")
    shutil.copy(media / "clips" / CLIP, films / "b.flv")
    (films / "a.srt").write_text("1\n00:00:00,500 --> 00:00:01,500\nA book.\n")
    assert run(place, str(films)).count("indexed") == 2
    change(films)
    report = run(place, str(films))
    assert (report.numbers.states, report.frames) == (states, 0)
    library = Library.open(str(place))
    assert {Path(row.uri).name for row in library.videos()} == addresses
    for row in library.videos():
        with video_file(library, row) as path:
            assert path == Path(row.uri)
        assert len(library.ingest_log.places(row)) == sum(
            each.video_id == row.video_id for each in library.ingest_log.sources().values()
        )
    assert [row.text for video in library.videos() for row in library.speech(video.video_id)] == ["A book."]
    assert (audit(library).problems, library.ingest_log.failures()) == ((), [])


def test_a_place_is_gone_only_where_its_own_file_system_says_so(tmp_path: Path) -> None:
    pytest.importorskip("aiohttp")
    (tmp_path / "empty").mkdir()
    (tmp_path / "film.mp4").write_bytes(b"film")
    with serve_folder(tmp_path) as address, serve_folder(tmp_path, login="me:secret") as closed:
        states = {
            "there": (Place(str(tmp_path / "film.mp4")), Place(f"{address}/film.mp4")),
            "gone": (
                Place(str(tmp_path / "no.mp4")),
                Place(f"{address}/no.mp4"),
                Place(str(tmp_path / "empty/a"), "/"),
            ),
            "unknown": (
                Place(f"{closed}/film.mp4"),
                Place("http://127.0.0.1:9/film.mp4"),
                Place("/no-such-top/films/a.mp4", "/"),
                Place(str(tmp_path / "no.mp4"), str(tmp_path / "empty")),  # its disk was mounted there
                Place(str(tmp_path / "empty" / "a.mp4")),  # an empty folder, as without its disk
            ),
        }
        for state, places in states.items():
            assert {place: look(place).state for place in places} == dict.fromkeys(places, state)


@pytest.mark.slow
def test_a_film_that_moved_on_the_web_is_followed_and_one_of_a_server_that_is_down_is_not(
    media: Path, tmp_path: Path
) -> None:
    pytest.importorskip("aiohttp")
    (tmp_path / "web").mkdir()
    shutil.copy(media / "clips" / BOOK, tmp_path / "web" / "a.mkv")
    config, place = IngestConfig(space=DRAWN, workers=1), str(tmp_path / "library")
    with serve_folder(tmp_path / "web") as address:
        run_ingest(config, [Source(f"{address}/a.mkv", "a")], place)
        (tmp_path / "web" / "a.mkv").rename(tmp_path / "web" / "b.mkv")
        assert run_ingest(config, [Source(f"{address}/b.mkv", "b")], place).count("moved") == 1
    with serve_folder(tmp_path / "web") as other:
        assert run_ingest(config, [Source(f"{other}/b.mkv", "b")], place).count("already there") == 1
    (video,) = Library.open(place).videos()
    assert (video.uri, video.title) == (f"{address}/b.mkv", "b")


@pytest.mark.slow
def test_prefixes_are_relocated_as_a_dry_run_says_and_back_all_at_once_or_not(kinodex, media, tmp_path):
    films, new, place = tmp_path / "films", tmp_path / "disk 2" / "films", tmp_path / "library"
    films.mkdir()
    for name in (BOOK, CLIP):
        shutil.copy(media / "clips" / name, films / name)
    run(place, str(films))
    new.parent.mkdir()
    films.rename(new)
    checked = kinodex("maintain", place, "--check")
    assert "files gone: 2 of 2 videos" in checked.out
    assert f"`kinodex relocate {place} {films} NEW_FOLDER`" in checked.out
    gone = json_of(kinodex, "maintain", place, "--check")["addresses"]["gone"]
    assert {Path(each["uri"]).parent for each in gone} == {films}
    tried = json_of(kinodex, "relocate", place, films, new, "--dry-run")
    assert (len(tried["videos"]), tried["there"], tried["dry_run"]) == (2, 2, True)
    library = Library.open(str(place))
    assert {Path(row.uri).parent for row in library.videos()} == {films}
    bad(kinodex, "relocate", place, tmp_path / "filmz", new, code=2, says=f"the nearest are under {films}")
    bad(kinodex, "relocate", place, films / BOOK, films / CLIP, code=2, says="would be those of other videos")
    bad(kinodex, "relocate", place, films, films, code=2, says="twice")
    with library.lease("ingest", "another run"):
        bad(kinodex, "relocate", place, films, new, code=4, says="another run")
    assert "2 videos relocated" in kinodex("relocate", place, films, new).out
    library = Library.open(str(place))
    assert {Path(row.uri).parent for row in library.videos()} == {new}
    assert run(place, str(new)).numbers.states == {}  # all are known there
    assert audit(library).problems == () and "files gone" not in kinodex("maintain", place, "--check").out
    done = open_library(place).relocate(tmp_path / "disk 2", "https://host/a")
    assert {each.new_uri for each in done.videos} == {f"https://host/a/films/{name}" for name in (BOOK, CLIP)}
    open_library(place).relocate("https://host/a", "s3://me:secret@bucket/a")
    assert {row.uri.rpartition("/")[0] for row in Library.open(str(place)).videos()} == {"s3://bucket/a/films"}
