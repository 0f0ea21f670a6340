"""`kinodex export clips` and `frames`, and `kinodex ask --clip`: what they write, print and refuse."""

from __future__ import annotations

from pathlib import Path

from tests.support.command import Kinodex, bad, json_of


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
