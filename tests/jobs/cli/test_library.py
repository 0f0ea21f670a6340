"""`kinodex frames`: stored frames as files, at some times or of a part of a video."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from kinodex.index.library import Library
from tests.support.command import bad
from tests.support.libraries.agent_library import JPEG, make_library
from tests.support.libraries.random_library import SETTINGS, fingerprint, made


@pytest.fixture
def library(tmp_path) -> Library:
    return make_library(tmp_path / "library", {"one.mp4": ["a red kite"] * 20})


@pytest.mark.parametrize(
    ("options", "times_s"),
    [
        (("--at", 3, "--at", 7.4), [3.0, 7.0]),
        (("--from", 16.5), [16.0, 17.0, 18.0, 19.0]),
        (("--from", 4, "--to", 7), [4.0, 5.0, 6.0]),
        (("--to", 9, "--every", 4), [0.0, 4.0, 8.0]),
        (("--from", 2, "--to", 4, "--every", 0.25), [2.0, 3.0]),
        (("--from", 2, "--to", 4, "--every", 1e-9), [2.0, 3.0]),
        (("--from", 19.7, "--every", 0.1), [19.0]),
    ],
)
def test_frames_are_written(library, kinodex, tmp_path, options, times_s):
    ran = kinodex("frames", library.uri, "--video", "one.mp4", *options, "--out", tmp_path / "out", "--json")
    written = json.loads(ran.out)
    assert [each["time_s"] for each in written] == times_s
    assert all((tmp_path / "out" / each["path"]).read_bytes() == JPEG for each in written)


def test_a_part_has_all_its_frames_wherever_it_begins(kinodex, tmp_path):
    times_s = (0.0, 0.96, 2.0, 2.96, 4.0, 4.96)  # as a film of 25 frames a second is sampled
    library, video = Library.create(str(tmp_path / "made"), SETTINGS, fingerprint()), made("aaaa", 6, seed=1)
    rows = [replace(row, time_s=time_s) for row, time_s in zip(video.frame_rows(), times_s, strict=True)]
    library.writer.add_frames({"aaaa": rows})
    assert library.writer.complete([video.video_row()]) == ()
    ran = kinodex("frames", library.uri, "--video", "aaaa", "--from", 0.97, "--out", tmp_path / "out", "--json")
    assert [each["time_s"] for each in json.loads(ran.out)] == list(times_s[1:])


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ((), "neither --at and"),
        (("--at", 1, "--from", 0), "both --at and"),
        (("--from", 30), "from 30 to 20 s of one.mp4"),
        (("--from", 5, "--every", 0), "got --every 0"),
        (("--from", "nan", "--to", 4), "not a number"),
        (("--from", 5, "--to", "nan"), "not a number"),
    ],
)
def test_what_makes_no_sense_writes_nothing(library, kinodex, tmp_path, options, says):
    out = tmp_path / "out"
    bad(kinodex, "frames", library.uri, "--video", "one.mp4", *options, "--out", out, code=2, says=says)
    assert not out.exists()


def test_places_that_are_refused(library, kinodex, tmp_path):
    at = ("frames", library.uri, "--out", tmp_path)
    bad(kinodex, *at, "--video", "zzzz", "--at", 1, code=2, says="zzzz")
    bad(kinodex, *at, "--video", "one.mp4", "--at", 99999, code=2, says="99999")
    bad(kinodex, *at, "--video", "one.mp4", "--at", 1, "--mode", "near", code=2, says="near")
