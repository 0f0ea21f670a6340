"""`kinodex export` of moments, and `kinodex ask --clip`: what the commands write, print and refuse."""

from __future__ import annotations

import json
from pathlib import Path

import webvtt

from tests.support.command import Kinodex, bad, json_of


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


def test_clips_and_frames_of_a_range(kinodex: Kinodex, library: Path, tmp_path: Path) -> None:
    part = ("--video", "film-02", "--from", 5, "--to", 7)
    ran = kinodex("export", "clips", library, tmp_path / "clips", *part, "--exact", "--label", "mine")
    assert (ran.code, ran.out.startswith("1 clip in ")) == (0, True)
    (row,) = json_of(kinodex, "export", "clips", library, tmp_path / "copied", *part)
    assert row["way"] == "copied" and row["start_s"] <= 5
    assert kinodex("export", "clips", library, tmp_path / "joined", *part, "--join").out.startswith("1 clip in ")
    assert kinodex("export", "frames", library, tmp_path / "frames", *part).out.startswith("2 frames in ")
    bad(kinodex, "export", "clips", library, tmp_path / "none", code=2, says="got no moments; give --ranges FILE")
    assert not (tmp_path / "none").exists()


def test_annotations_of_the_shots(kinodex: Kinodex, library: Path, tmp_path: Path) -> None:
    assert json_of(kinodex, "export", "label-studio", library, tmp_path / "tasks")["tasks"] == 3
    assert json_of(kinodex, "export", "fiftyone", library, tmp_path / "fiftyone")["videos"] == 3
    bad(kinodex, "export", "coco", library, tmp_path / "coco", code=2, says="kinodex add detections")


def test_a_clip_of_the_evidence(kinodex: Kinodex, library: Path, tmp_path: Path) -> None:
    clip = tmp_path / "evidence.mp4"
    question = ("ask", library, "When does the code word come?", "--video", "film-01")
    ran = kinodex(*question, "--clip", clip, "--trace", tmp_path / "trace.jsonl")
    assert ran.code == 0 and f"clip      {clip}" in ran.out
    assert clip.stat().st_size > 1000
    bad(kinodex, *question, "--clip", clip, code=2, says="which is there already")
    bad(kinodex, *question, "--clip", tmp_path / "a.gif", code=2, says="a clip is an .mp4")
    rows = kinodex("export", "csv", library, "--trace", tmp_path / "trace.jsonl").out
    assert "When does the code word come?" in rows
