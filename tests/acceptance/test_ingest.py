"""Ingest: what a library holds afterwards, what a second run does, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

import kinodex as package
from tests.acceptance import LINE
from tests.support.command import Kinodex, bad, json_of
from tests.world.drawn_space import DRAWN


def test_films_are_indexed_by_python_with_frames_shots_and_subtitles(films: Path, tmp_path: Path) -> None:
    report = package.ingest(str(films), library=tmp_path / "library", space=DRAWN)
    assert (report.count("indexed"), report.count("failed"), report.frames) == (3, 0, 90)
    library = package.open(tmp_path / "library")
    assert sorted((row.title, row.frames) for row in library.videos()) == [(f"film-0{n}", 30) for n in (1, 2, 3)]
    assert [frame.time_s for frame in library.frames("film-02", [0, 7, 29.4])] == [0.0, 7.0, 29.0]
    segments = library.segments("film-01")
    assert (segments[0].start_s, segments[-1].end_s) == (0.0, 30.0)
    assert (LINE[0], *LINE[2:]) in [(row.text, row.start_s, row.end_s) for row in library.speech("film-01")]


def test_the_command_does_only_what_is_new(kinodex: Kinodex, short_films: Path, tmp_path: Path) -> None:
    place = ("--library", tmp_path / "library", "--space", DRAWN)
    first = json_of(kinodex, "ingest", short_films / "film-01.mp4", *place)
    assert [(each["title"], each["state"], each["frames"]) for each in first["sources"]] == [("film-01", "indexed", 4)]
    both = json_of(kinodex, "ingest", short_films / "film-01.mp4", short_films / "film-02.mp4", *place)
    assert ([each["title"] for each in both["sources"]], both["left_out"]) == (["film-02"], 1)
    assert [row.title for row in package.open(tmp_path / "library").videos()] == ["film-01", "film-02"]


def test_a_file_that_is_no_video_fails_alone(kinodex: Kinodex, short_films: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.mp4"
    broken.write_bytes(b"not a film at all" * 99)
    place = ("--library", tmp_path / "library", "--space", DRAWN)
    report = json_of(kinodex, "ingest", short_films / "film-01.mp4", broken, *place, code=3)
    assert {each["title"]: each["state"] for each in report["sources"]} == {"film-01": "indexed", "broken": "failed"}
    assert [row.title for row in package.open(tmp_path / "library").videos()] == ["film-01"]
    (failure,) = json_of(kinodex, "info", tmp_path / "library")["failures"]
    assert "broken.mp4: no video container" in failure["message"] and "\n" not in failure["message"]


def test_settings_can_be_seen_before(kinodex: Kinodex, tmp_path: Path) -> None:
    ran = kinodex("ingest", tmp_path, "--library", tmp_path / "library", "--fps", 2, "--print-config")
    assert ran.code == 0 and "fps = 2.0" in ran.out
    assert not (tmp_path / "library").exists()


def test_what_ingest_refuses(kinodex: Kinodex, shown: Path, films: Path, tmp_path: Path) -> None:
    for arguments, code, says in (
        ((films / "none.mp4", "--library", shown), 2, "none.mp4: no such file or folder"),
        ((films, "--library", shown, "--fps", 2), 4, "made with fps=1.0"),
        ((films, "--library", tmp_path / "new", "--space", DRAWN, "--set", "fsp=2"), 2, "did you mean"),
        ((films,), 2, "--library"),
    ):
        bad(kinodex, "ingest", *arguments, code=code, says=says)
    assert not (tmp_path / "new").exists()


def test_python_raises_what_the_command_prints(shown: Path, films: Path) -> None:
    with pytest.raises(package.PipelineError, match=r"no such file or folder"):
        package.ingest(str(films / "none.mp4"), library=shown)
    with pytest.raises(package.KinodexError, match=r"made with fps=1\.0"):
        package.ingest(str(films), library=shown, fps=2)


def test_info_counts_what_was_indexed(kinodex: Kinodex, shown: Path) -> None:
    facts = json_of(kinodex, "info", shown)
    assert ([video["title"] for video in facts["videos"]], facts["frames"]) == (["film-01", "film-02", "film-03"], 90)
    assert facts["columns"] == {"camera": "string"}
    same = package.open(shown).info()
    assert (same.videos, same.frames) == (3, 90)
    bad(kinodex, "info", shown / "none", code=4, says="there is no library")
