"""Stored frames of moments as JPEGs, opened by Pillow, and their table."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from PIL import Image

from kinodex.index.library import Library
from kinodex.jobs.export.media import TABLE, export_frames
from kinodex.jobs.export.moments import Moment


@pytest.fixture(scope="module")
def opened(library: Path) -> Library:
    return Library.open(str(library))


def test_frames_of_moments_and_their_table(opened: Library, tmp_path: Path) -> None:
    film = opened.video("film-02")
    moments = [Moment(film, 4.0, 8.0, "one"), Moment(film, 7.0, 9.0), Moment(film, 10.2, 10.3)]
    rows = export_frames(opened, moments, tmp_path / "out")
    assert [row["time_s"] for row in rows] == [4.0, 5.0, 6.0, 7.0, 7.0, 8.0, 10.0]
    assert rows[3]["file"] == rows[4]["file"]
    with (tmp_path / "out" / TABLE).open(newline="") as file:
        assert [row["file"] for row in csv.DictReader(file)] == [row["file"] for row in rows]
    with Image.open(tmp_path / "out" / rows[0]["file"]) as picture:
        assert picture.size == (rows[0]["width_px"], rows[0]["height_px"])
    stored = opened.frames(film.video_id, [rows[0]["frame_no"]])[0]
    assert (tmp_path / "out" / rows[0]["file"]).read_bytes() == stored.jpeg


def test_at_most_so_many_are_spread_evenly(opened: Library, tmp_path: Path) -> None:
    whole = Moment(opened.video("film-02"), 0.0, 30.0)
    rows = export_frames(opened, [whole], tmp_path / "out", most=2)
    assert [row["time_s"] for row in rows] == pytest.approx([7.5, 22.5], abs=1.0)


@pytest.mark.parametrize("most", [1, 2, 3, 4])
def test_no_frame_is_taken_twice(opened: Library, tmp_path: Path, most: int) -> None:
    rows = export_frames(opened, [Moment(opened.video("film-02"), 4.0, 7.0)], tmp_path / "out", most=most)
    times_s = [row["time_s"] for row in rows]
    assert times_s == sorted(set(times_s)) and len(times_s) == min(most, 3)
