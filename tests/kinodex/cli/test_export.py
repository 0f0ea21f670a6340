"""`kinodex export`: clips, frames, subtitles, lists and data sets; what they print and refuse."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import webvtt

from kinodex.index.library import Library
from tests.support.command import Kinodex, bad, json_of
from tests.support.libraries.agent_library import JPEG, make_library
from tests.support.libraries.random_library import SETTINGS, fingerprint, made
from tests.support.libraries.viewer_library import QUESTION, Shown, held_in


@pytest.mark.slow
def test_clips_and_frames_of_a_range(kinodex: Kinodex, library: Path, tmp_path: Path) -> None:
    part = ("--video", "film-02", "--from", 5, "--to", 7)
    ran = kinodex("export", "clips", library, tmp_path / "clips", *part, "--exact", "--label", "mine")
    assert (ran.code, ran.out.startswith("1 clip in ")) == (0, True)
    (row,) = json_of(kinodex, "export", "clips", library, tmp_path / "copied", *part)
    assert row["way"] == "copied" and row["start_s"] <= 5
    assert kinodex("export", "clips", library, tmp_path / "joined", *part, "--reel").out.startswith("1 clip in ")
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


@pytest.mark.slow
def test_subtitles_and_annotations_of_several_videos(kinodex: Kinodex, library: Path, tmp_path: Path) -> None:
    shots = ("--of", "shots")
    bad(kinodex, "export", "vtt", library, *shots, code=2, says="got moments of 3 videos; give a folder")
    for form in ("vtt", "srt"):
        file = tmp_path / f"film.{form}"
        bad(kinodex, "export", form, library, file, *shots, code=2, says="got moments of 3 videos; give a folder")
        assert not file.exists()
        assert kinodex("export", form, library, file, *shots, "--video", "film-01").code == 0
        assert file.is_file()
    assert kinodex("export", "vtt", library, tmp_path / "chapters", *shots).code == 0
    assert sorted(path.name for path in (tmp_path / "chapters").iterdir()) == [f"film-0{n}.vtt" for n in (1, 2, 3)]
    assert json_of(kinodex, "export", "label-studio", library, tmp_path / "tasks")["tasks"] == 3
    assert json_of(kinodex, "export", "fiftyone", library, tmp_path / "fiftyone")["videos"] == 3
    bad(kinodex, "export", "coco", library, tmp_path / "coco", code=2, says="kinodex add detections")


def test_a_page_is_one_file_of_a_library_with_its_traces(kinodex: Kinodex, shown: Shown, tmp_path: Path) -> None:
    out = tmp_path / "trace.html"
    ran = kinodex("export", "page", shown.library.uri, out, "--trace", shown.traces[0])
    assert ran.code == 0, ran
    assert ran.err.startswith(f"{out}: 0.") and "MB, needs no network" in ran.err
    held = held_in(out.read_text(encoding="utf-8"))
    assert held["data"]["home"]["traces"][0]["question"]["text"] == QUESTION.text and held["pictures"]
    assert kinodex("export", "page", shown.traces[0]).out.startswith("<!doctype html>"), "a trace alone"
    (tmp_path / "notes.txt").write_text("hello")
    for place, to, says in (
        (tmp_path, "-", "which is no trace, run or library"),
        (tmp_path / "notes.txt", "-", "cannot be read as a trace"),
        (shown.library.uri, tmp_path / "no" / "x.html", "cannot write"),
        (shown.library.uri, out, "which is there already; give another file, or --overwrite"),
    ):
        bad(kinodex, "export", "page", place, to, code=2, says=says)


def test_each_option_is_for_the_kinds_that_name_it(kinodex: Kinodex, library: Path, tmp_path: Path) -> None:
    for kind, to, options, says in (
        ("csv", "-", ("--exact",), "got --exact with csv; it is for clips"),
        ("srt", "-", ("--drop-frame",), "got --drop-frame with srt; it is for edl"),
        ("otio", "-", ("--json",), "got --json with otio; it is for clips, frames, "),
        ("clips", tmp_path / "clips", ("--title", "x"), "got --title with clips; it is for edl, otio"),
        ("hf", tmp_path / "hf", ("--search", "x"), "got --search with hf, which takes only --video and --where"),
        ("page", "-", ("--from", 3), "got --from with page, which takes only --trace"),
    ):
        bad(kinodex, "export", kind, library, to, *options, code=2, says=says)
    bad(kinodex, "export", "clips", library, "--of", "shots", code=2, says="got no folder for clips")
    bad(kinodex, "export", "smells", library, code=2, says="got the kind 'smells'; it is one of clips, frames, ")
    assert not any(tmp_path.iterdir())


def test_the_command_says_what_it_wrote(library: Path, kinodex: Kinodex, tmp_path: Path) -> None:
    ran = kinodex("export", "hf", library, tmp_path / "films", "--video", "film-01")
    assert ran.code == 0
    assert ran.out.startswith("30 frames of 1 video in 1 file, ")
    written = json_of(kinodex, "export", "hf", library, tmp_path / "json", "--shard-frames", 30)
    assert (written["videos"], written["frames"], written["files"], written["files_before"]) == (3, 90, 3, 0)


def test_what_makes_no_sense_is_refused(library: Path, kinodex: Kinodex, tmp_path: Path) -> None:
    full = tmp_path / "full"
    full.mkdir()
    (full / "notes.txt").write_text("mine")
    file = tmp_path / "file"
    file.write_text("")
    new = tmp_path / "new"
    for arguments, code, words in (
        ((full,), 2, "which is not empty (notes.txt); give a folder that is new or empty"),
        ((file,), 2, "which is a file; give a folder"),
        ((new, "--vectors", "int8"), 2, "got vectors 'int8'; give float16, float32, none"),
        ((new, "--split", "a b"), 2, "got split 'a b'"),
        ((new, "--video", "film-99"), 2, "film-99"),
        ((new, "--space", "ViT-X"), 4, "got space ViT-X"),
    ):
        bad(kinodex, "export", "hf", library, *arguments, code=code, says=words)
    assert not new.exists()
    Library.create(str(tmp_path / "empty"), SETTINGS, fingerprint())
    bad(kinodex, "export", "hf", tmp_path / "empty", new, code=2, says="has no frames to export")


@pytest.fixture
def kite(tmp_path) -> Library:
    return make_library(tmp_path / "library", {"one.mp4": ["a red kite"] * 20})


def test_stored_frames_are_written_by_their_times(kite, kinodex, tmp_path):
    for options, times_s in (
        (("--at", 3, "--at", 7.4), [3.0, 7.0]),
        (("--from", 0, "--to", 20, "--every", 8), [0.0, 8.0, 16.0]),
        (("--to", 9, "--every", 4), [0.0, 4.0, 8.0]),
        (("--from", 2, "--to", 4, "--every", 0.25), [2.0, 3.0]),
        (("--from", 2, "--to", 4, "--every", 1e-9), [2.0, 3.0]),
        (("--from", 19.7, "--every", 0.1), [19.0]),
    ):
        written = json_of(kinodex, "export", "frames", kite.uri, tmp_path / "out", "--video", "one.mp4", *options)
        assert [each["time_s"] for each in written] == times_s, options
        assert all((tmp_path / "out" / each["path"]).read_bytes() == JPEG for each in written)


def test_a_part_has_all_its_frames_wherever_it_begins(kinodex, tmp_path):
    times_s = (0.0, 0.96, 2.0, 2.96, 4.0, 4.96)  # as a film of 25 frames a second is sampled
    kite, video = Library.create(str(tmp_path / "made"), SETTINGS, fingerprint()), made("aaaa", 6, seed=1)
    rows = [replace(row, time_s=time_s) for row, time_s in zip(video.frame_rows(), times_s, strict=True)]
    kite.writer.add_frames({"aaaa": rows})
    assert kite.writer.complete([video.video_row()]) == ()
    at = ("--video", "aaaa", "--from", 0.97, "--every", 0.5)
    ran = kinodex("export", "frames", kite.uri, tmp_path / "out", *at, "--json")
    assert [each["time_s"] for each in json.loads(ran.out)] == list(times_s[1:])


def test_times_and_places_that_make_no_sense_write_nothing(kite, kinodex, tmp_path):
    to = ("export", "frames", kite.uri, tmp_path / "out")
    for options, says in (
        (("--video", "one.mp4", "--at", 1, "--from", 0), "both --at and"),
        (("--video", "one.mp4", "--from", 30, "--every", 1), "from 30 to 20 s of one.mp4"),
        (("--video", "one.mp4", "--from", 5, "--every", 0), "got --every 0"),
        (("--video", "one.mp4", "--from", "nan", "--to", 4, "--every", 1), "got the time 'nan'"),
        (("--video", "one.mp4", "--from", 5, "--to", "nan", "--every", 1), "got the time 'nan'"),
        (("--video", "zzzz", "--at", 1), "zzzz"),
        (("--video", "one.mp4", "--at", 99999), "99999"),
        (("--video", "one.mp4", "--at", 1, "--mode", "near"), "near"),
        (("--at", 1), "got --at or --every without one video"),
    ):
        bad(kinodex, *to, *options, code=2, says=says)
    assert not list(tmp_path.rglob("*.jpg"))
