"""The whole job by the command line, on sketch films; and what it says to bad input."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.support.command import Kinodex, bad
from tests.world.drawn_space import DRAWN


@pytest.mark.slow
def test_ingest_again_info_and_report(kinodex: Kinodex, short_films: Path, tmp_path: Path) -> None:
    films, library = shutil.copytree(short_films, tmp_path / "films"), tmp_path / "library"
    (films / "noise.mp4").write_text("this is no video")

    first = kinodex("ingest", films, "--library", library, "--space", DRAWN, "--json")
    told = json.loads(first.out)["sources"]
    assert first.code == 3
    assert sorted(each["state"] for each in told) == ["failed", *["indexed"] * 3]

    info = json.loads(kinodex("info", library, "--json").out)
    assert [row["error_class"] for row in info["failures"]] == ["NotAVideo"]
    assert len(info["videos"]) == 3
    assert info["frames"] == sum(row["frames"] for row in info["videos"])

    (films / "noise.mp4").unlink()
    again = kinodex("ingest", films, "--library", library)
    assert again.code == 0
    assert "nothing to do: the library knows all 3 sources; 1 failed before" in again.out

    runs = json.loads(kinodex("info", library, "--runs", "--json").out)
    assert [(run["kind"], run["state"], run["report"]["counts"]["indexed"]) for run in runs] == [
        ("ingest", "done", 0),
        ("ingest", "done", 3),
    ]
    assert "3 indexed, 0 already there, 1 failed" in kinodex("info", library, "--run", runs[1]["run_id"]).out


@pytest.mark.slow
def test_a_broken_subtitle_file_stays_a_failure_when_there_is_nothing_to_do(
    kinodex: Kinodex, short_films: Path, tmp_path: Path
) -> None:
    folder, library = tmp_path / "films", tmp_path / "library"
    folder.mkdir()
    shutil.copy(short_films / "film-02.mp4", folder)
    (folder / "film-02.srt").write_bytes(bytes(range(256)) * 20)
    for _ in range(2):
        assert kinodex("ingest", folder, "--library", library, "--space", DRAWN).code == 0
        failures = json.loads(kinodex("info", library, "--json").out)["failures"]
        assert [(row["stage"], row["error_class"]) for row in failures] == [("subtitles", "SubtitleError")]


def test_the_python_of_the_readme_runs(
    root: Path, library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code = (root / "README.md").read_text().split("```python\n")[1].split("```")[0]
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "library").symlink_to(library)
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "README.md", "exec"), {"__name__": "__main__"})
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_bad_sources(kinodex: Kinodex, tmp_path: Path) -> None:
    to = ("--library", tmp_path / "library", "--space", DRAWN)
    bad(kinodex, "ingest", tmp_path / "none.mp4", *to, code=2, says="none.mp4")
    bad(kinodex, "ingest", str(tmp_path / "*.mp4"), *to, code=2, says="*.mp4")
    (tmp_path / "empty folder").mkdir()
    bad(kinodex, "ingest", tmp_path / "empty folder", *to, code=2, says="empty folder")
    assert not (tmp_path / "library").exists()


def test_without_a_decoder_ingest_says_what_is_missing(
    kinodex: Kinodex, films: Path, library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "av", None)  # as on a platform without its wheel: importing it fails
    to = ("--library", tmp_path / "library", "--space", DRAWN)
    bad(kinodex, "ingest", films, *to, code=2, says="pip install 'kinodex[ingest]'")
    assert not (tmp_path / "library").exists()
    assert kinodex("search", library, "a boat").code == 0


@pytest.mark.slow
def test_bad_files_are_rows_and_the_rest_is_indexed(kinodex: Kinodex, media: Path, tmp_path: Path) -> None:
    awkward = media / "awkward"
    forbidden = tmp_path / "forbidden.mp4"
    shutil.copy(awkward / "torchcodec__h265_video.mp4", forbidden)
    forbidden.chmod(0)
    named = {
        awkward / "moviepy__doc_medias_result.webm": "EmptyFile",
        awkward / "pixeltable__bad_video.mp4": "NotAVideo",
        awkward / "mediabunny__multiple-aac-tracks.mp4": "NoVideoStream",
        awkward / "moviepy__with-attached-pic.mp3": "NoVideoStream",
        awkward / "mediabunny__segment.mp4": "NotAVideo",
    }
    good = [awkward / "decord__corrupted.mp4", awkward / "mediabunny__annex-b.mp4"]
    if os.geteuid() != 0:
        named[forbidden] = "SourceForbidden"
    library = tmp_path / "library"
    ran = kinodex("ingest", *named, *good, "--library", library, "--space", DRAWN, "--json")
    assert ran.code == 3
    info = json.loads(kinodex("info", library, "--json").out)
    assert {row["uri"]: row["error_class"] for row in info["failures"]} == {str(p): name for p, name in named.items()}
    assert {row["uri"] for row in info["videos"]} == set(map(str, good))
    assert all(row["decode_errors"] > 0 for row in info["videos"] if "corrupted" in row["uri"])


def test_bad_libraries(kinodex: Kinodex, films: Path, library: Path, tmp_path: Path) -> None:
    bad(kinodex, "info", tmp_path / "nowhere", code=4, says="nowhere")
    bad(kinodex, "info", "", code=4, says="empty name for a library")
    bad(kinodex, "search", films, "a boat", code=4, says="films")
    bad(kinodex, "ingest", films, "--library", films, "--space", DRAWN, code=4, says="films")
    bad(kinodex, "ingest", films, "--library", library, "--fps", 2, code=4, says="fps=2")
    bad(kinodex, "ingest", films, "--library", library, "--fps", -1, code=2, says="fps=-1")


def test_a_bad_space(kinodex: Kinodex, films: Path, tmp_path: Path) -> None:
    to = ("--library", tmp_path / "library")
    ran = kinodex("ingest", films, *to, "--space", "ViT-B-33/laion2b_s34b_b79k")
    assert ran.code == 2 and "ViT-B-32" in ran.error_line
    assert "exporting" not in ran.err, "a child would import open_clip for it"
    assert not (tmp_path / "library").exists()
