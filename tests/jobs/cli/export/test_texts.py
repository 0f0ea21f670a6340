"""`kinodex export` of texts: to standard output, a file or a folder; never over something unasked."""

from __future__ import annotations

import json
from pathlib import Path

import webvtt

from tests.support.command import Kinodex, bad


def test_texts_go_to_standard_output_or_a_file(kinodex: Kinodex, library: Path, tmp_path: Path) -> None:
    said = kinodex("export", "vtt", library, "--video", "film-01")
    assert "code word" in " ".join(cue.text for cue in webvtt.from_string(said.out).captions)
    assert kinodex("export", "srt", library, "--video", "film-01").out.startswith("1\n")
    assert kinodex("export", "edl", library, "--search", "a boat", "-k", 2).out.count("FROM CLIP NAME") == 2
    assert json.loads(kinodex("export", "otio", library).out)["OTIO_SCHEMA"] == "Timeline.1"
    table = tmp_path / "shots.csv"
    assert kinodex("export", "csv", library, table).code == 0
    rows = kinodex("export", "jsonl", library, "--ranges", table).out.splitlines()
    assert len(rows) == len(table.read_text().splitlines()) - 1
    bad(kinodex, "export", "csv", library, table, code=2, says="which is there already")
    assert kinodex("export", "csv", library, table, "--overwrite").code == 0


def test_subtitles_of_several_videos_are_a_folder(kinodex: Kinodex, library: Path, tmp_path: Path) -> None:
    shots = ("--of", "shots")
    bad(kinodex, "export", "vtt", library, *shots, code=2, says="got moments of 3 videos; give a folder")
    assert kinodex("export", "vtt", library, tmp_path / "chapters", *shots).code == 0
    assert sorted(path.name for path in (tmp_path / "chapters").iterdir()) == [f"film-0{n}.vtt" for n in (1, 2, 3)]
