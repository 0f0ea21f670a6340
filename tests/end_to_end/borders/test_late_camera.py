"""A call whose sound begins at 0:00 and whose camera comes on later: pictures, words and clips by a player's clock."""

from __future__ import annotations

import csv
from itertools import pairwise
from pathlib import Path
from shutil import rmtree

import numpy as np
import pytest

from kinodex.index.library import Library
from tests.support.command import Kinodex, json_of
from tests.support.ffmpeg import ffmpeg, needs_ffmpeg
from tests.world.drawn_space import DRAWN

ON_S, CHANGE_S, END_S = 15.0, 20.0, 25.0
"""When the camera comes on and shows red, when the wall is blue, and the end."""
BEEP_S = 17.0
SUBTITLES = (
    "1\n00:00:05,000 --> 00:00:08,000\nhello before the camera\n\n2\n00:00:21,000 --> 00:00:23,000\nnow it is blue\n"
)


def call(path: Path) -> Path:
    beep = f"aevalsrc='if(between(t,{BEEP_S},{BEEP_S + 1}),0.5*sin(880*2*PI*t),0)':d={END_S}:s=48000"
    colours = [("-f", "lavfi", "-i", f"color={each}:s=160x96:r=10:d=5") for each in ("red", "blue")]
    graph = f"[0][1]concat,setpts=PTS+{ON_S}/TB[v]"
    inputs = (*colours[0], *colours[1], "-f", "lavfi", "-i", beep, "-filter_complex", graph, "-map", "[v]", "-map", "2")
    path.parent.mkdir()
    ffmpeg(
        *inputs, "-fps_mode", "passthrough", "-c:v", "libx264", "-g", "10", "-pix_fmt", "yuv420p", "-c:a", "aac", path
    )
    path.with_suffix(".srt").write_text(SUBTITLES)
    return path


@needs_ffmpeg
@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".mkv", ".mp4", ".ts"])
def test_a_late_camera_keeps_the_clock_of_its_sound(suffix: str, kinodex: Kinodex, tmp_path: Path) -> None:
    film, library = call(tmp_path / "films" / f"call{suffix}"), tmp_path / "library"
    assert kinodex("ingest", film, "--library", library, "--space", DRAWN).code == 0
    (video,) = Library.open(str(library)).videos()
    assert (video.start_s, video.end_s) == pytest.approx((ON_S, END_S), abs=0.1)
    shots = [(row.start_s, row.end_s) for row in Library.open(str(library)).segments(video.video_id)]
    assert shots == [pytest.approx(each, abs=0.1) for each in pairwise((ON_S, CHANGE_S, END_S))]

    said = kinodex("export", "srt", library, "-")
    assert said.out == SUBTITLES.rstrip() + "\n\n", "what is said before the first picture is there as well"
    (hit,) = json_of(kinodex, "search", library, "hello", "--in", "speech")
    assert (hit["time_s"], hit["end_s"]) == (5.0, 8.0)
    assert kinodex("export", "frames", library, tmp_path / "frames", "--video", "call", "--at", 21).code == 0

    clips = tmp_path / "clips"
    kinodex("export", "clips", library, clips, "--video", "call", "--from", 16, "--to", 19, "--exact", "--pad", 0)
    (row,) = csv.DictReader((clips / "clips.csv").read_text().splitlines())
    assert (row["error"], row["has_sound"]) == ("", "True")
    levels = np.frombuffer(ffmpeg("-i", clips / row["file"], "-ac", "1", "-ar", "8000", "-f", "s16le", "-"), np.int16)
    assert np.flatnonzero(np.abs(levels) > 5000)[0] / 8000 == pytest.approx(BEEP_S - 16, abs=0.15)


@needs_ffmpeg
@pytest.mark.slow
def test_words_that_are_imported_may_be_said_before_the_first_picture(kinodex: Kinodex, tmp_path: Path) -> None:
    film, library = call(tmp_path / "films" / "call.mkv"), tmp_path / "library"
    film.with_suffix(".srt").rename(tmp_path / "call.srt")
    assert kinodex("ingest", film, "--library", library, "--space", DRAWN).code == 0
    assert kinodex("import", "speech", tmp_path / "call.srt", library).code == 0
    assert kinodex("export", "srt", library, "-").out == SUBTITLES.rstrip() + "\n\n"


@needs_ffmpeg
@pytest.mark.slow
def test_a_row_that_is_made_again_has_the_clock_of_its_file(kinodex: Kinodex, tmp_path: Path) -> None:
    film, library = call(tmp_path / "films" / "call.ts"), tmp_path / "library"
    assert kinodex("ingest", film, "--library", library, "--space", DRAWN).code == 0
    (before,) = Library.open(str(library)).videos()
    rmtree(library / "videos.lance")
    assert kinodex("maintain", library, "--repair").code == 3, "what a file does not say is lost"
    (after,) = Library.open(str(library)).videos()
    assert (after.zero_s, after.start_s) == pytest.approx((before.zero_s, before.start_s)) and before.start_s > 14
