"""Export: clips, frames, subtitles, edit lists, tables and data sets of moments, and what is refused."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import kinodex as package
from tests.acceptance import LINE, SAID, SHOTS, TENTS
from tests.support.command import Kinodex, bad, json_of
from tests.world.drawn_space import DRAWN

PART = ("--video", TENTS.film, "--from", 18, "--to", 20)


def test_a_table_of_moments_is_read_again(kinodex: Kinodex, shown: Path, tmp_path: Path) -> None:
    table = tmp_path / "shots.csv"
    assert kinodex("export", "csv", shown, table, "--video", "film-02").code == 0
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert (len(rows), float(rows[0]["start_s"]), float(rows[-1]["end_s"])) == (7, 0.0, 30.0)
    again = kinodex("export", "jsonl", shown, "--ranges", table).out.splitlines()
    assert [json.loads(line)["start_s"] for line in again] == [float(row["start_s"]) for row in rows]
    bad(kinodex, "export", "csv", shown, table, code=2, says="which is there already")


def test_subtitles_hold_what_is_said(kinodex: Kinodex, shown: Path, tmp_path: Path) -> None:
    vtt = kinodex("export", "vtt", shown, "--video", "film-01").out
    assert vtt.startswith("WEBVTT") and f"00:00:12.700 --> 00:00:15.700\n{LINE[0]}" in vtt
    srt = kinodex("export", "srt", shown, "--of", SAID).out
    assert f"00:00:12,700 --> 00:00:15,700\n{LINE[0]}" in srt
    assert kinodex("export", "vtt", shown, tmp_path / "all", "--of", SHOTS).code == 0
    assert sorted(path.name for path in (tmp_path / "all").iterdir()) == [f"film-0{n}.vtt" for n in (1, 2, 3)]


def test_an_edit_list_and_a_time_line_cut_the_range(kinodex: Kinodex, shown: Path) -> None:
    edl = kinodex("export", "edl", shown, *PART, "--fps", 25).out
    (event,) = (line for line in edl.splitlines() if line.startswith("001"))
    assert event.split()[-4:] == ["00:00:18:00", "00:00:20:00", "01:00:00:00", "01:00:02:00"]
    assert [line.split()[-1] for line in edl.splitlines() if "FROM CLIP NAME" in line] == [TENTS.film]
    line = json.loads(kinodex("export", "otio", shown, *PART, "--fps", 25).out)
    (clip,) = line["tracks"]["children"][0]["children"]
    assert line["OTIO_SCHEMA"] == "Timeline.1"
    assert [clip["source_range"][name]["value"] for name in ("start_time", "duration")] == [18 * 25, 2 * 25]


def test_clips_are_cut_from_the_file_with_a_table_of_them(kinodex: Kinodex, shown: Path, tmp_path: Path) -> None:
    out = tmp_path / "clips"
    (row,) = json_of(kinodex, "export", "clips", shown, out, *PART, "--exact")
    assert (row["start_s"], row["end_s"], row["error"]) == (18.0, 20.0, "")
    (clip,) = out.glob("*.mp4")
    assert clip.stat().st_size > 1000 and (out / "clips.csv").is_file()
    package.ingest(str(clip), library=tmp_path / "library", space=DRAWN)
    (video,) = package.open(tmp_path / "library").videos()
    assert 1.9 < video.duration_s < 2.2


def test_frames_are_written_as_they_are_stored(kinodex: Kinodex, shown: Path, tmp_path: Path) -> None:
    at = ("--video", TENTS.film, "--at", 18, "--at", "0:19.2")
    rows = json_of(kinodex, "export", "frames", shown, tmp_path / "frames", *at)
    assert [row["time_s"] for row in rows] == [18.0, 19.0]
    assert len(list((tmp_path / "frames").glob("*.jpg"))) == 2


def test_the_evidence_of_an_answer_and_the_hits_of_a_search(kinodex: Kinodex, shown: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    ask = ("ask", shown, TENTS.question, *(part for option in TENTS.options for part in ("--option", option)))
    assert kinodex(*ask, "--video", TENTS.film, "--trace", trace).code == 0
    for source in (("--trace", trace), ("--search", TENTS.words, "-k", 1, "--video", TENTS.film)):
        lines = kinodex("export", "jsonl", shown, *source).out.splitlines()
        assert [TENTS.covers(json.loads(line)["start_s"]) for line in lines] == [True], source


def test_data_sets_for_labelling_and_training(kinodex: Kinodex, shown: Path, tmp_path: Path) -> None:
    tasks = json_of(kinodex, "export", "label-studio", shown, tmp_path / "tasks")
    assert tasks["tasks"] == len(json.loads((tmp_path / "tasks" / "tasks.json").read_text())) == 3
    assert json_of(kinodex, "export", "fiftyone", shown, tmp_path / "fiftyone")["videos"] == 3
    frames = json_of(kinodex, "export", "hf", shown, tmp_path / "hf", "--video", "film-01")
    assert (frames["videos"], frames["frames"]) == (1, 30)


def test_what_export_refuses(kinodex: Kinodex, shown: Path, tmp_path: Path) -> None:
    full = tmp_path / "full"
    full.mkdir()
    (full / "notes.txt").write_text("mine")
    for arguments, code, says in (
        (("clips", shown, tmp_path / "new"), 2, "got no moments"),
        (("clips", shown, full, *PART), 2, "which is not empty"),
        (("coco", shown, tmp_path / "new"), 2, "kinodex add detections"),
        (("vtt", shown, "--of", SHOTS), 2, "give a folder"),
        (("csv", shown, "--of", "smells"), 2, "smells"),
        (("csv", shown, "--video", "film-99"), 2, "such as film-0"),
        (("frames", shown, tmp_path / "new", "--at", 3), 2, "without one video"),
        (("jsonl", shown, "--ranges", tmp_path / "none.csv"), 2, "none.csv"),
        (("csv", tmp_path / "none"), 4, "there is no library"),
    ):
        bad(kinodex, "export", *arguments, code=code, says=says)
    assert not (tmp_path / "new").exists() and kinodex("export", "smells", shown).code == 2
