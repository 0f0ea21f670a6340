"""One clock for pictures, sound and clips of recordings that were joined byte by byte, and of a camera that is late."""

from __future__ import annotations

import io
from collections import deque
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import av
import numpy as np
import pytest

from kinodex.pipeline.decoding.clock import UNBROKEN, file_clock, find_clock
from kinodex.pipeline.decoding.open import open_video
from kinodex.pipeline.decoding.readers import VideoReader
from kinodex.pipeline.errors import VideoError
from kinodex.pipeline.media.clip_copy import copy_clip
from kinodex.pipeline.media.clip_encoding import encode_ranges
from kinodex.pipeline.media.facts import read_edit_facts
from kinodex.pipeline.media.play_stream import write_stream
from kinodex.pipeline.media.source import open_source
from kinodex.pipeline.models.audio import RATE_HZ, sound_pieces
from tests.support.ffmpeg import ffmpeg, needs_ffmpeg

PART_S = 4.0
BEEP_S = 1.0
"""Time of the beep, a second long, in each recording that has sound."""
JOINED_S = 3 * PART_S
BEEPS_S = (BEEP_S, 2 * PART_S + BEEP_S)
CODECS = {".ts": ("libx264", "aac"), ".mpg": ("mpeg2video", "mp2")}


def recording(path: Path, colour: str, has_sound: bool) -> bytes:
    """A recording whose clock begins at 10 s, in one colour."""
    pictures = ("-f", "lavfi", "-i", f"color={colour}:s=160x96:r=25:d={PART_S}")
    beep = f"aevalsrc='if(between(t,{BEEP_S},{BEEP_S + 1}),0.5*sin(880*2*PI*t),0)':d={PART_S}:s=48000"
    picture_codec, sound_codec = CODECS[path.suffix]
    sound = ("-f", "lavfi", "-i", beep, "-c:a", sound_codec) if has_sound else ()
    ffmpeg(*pictures, *sound, "-c:v", picture_codec, "-g", "25", "-output_ts_offset", "10", path)
    return path.read_bytes()


@pytest.fixture(scope="module", params=sorted(CODECS))
def joined(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Red with a beep, green without sound, and blue with a beep, each with the same clock of its own."""
    folder = tmp_path_factory.mktemp("joined")
    path = folder / f"joined{request.param}"
    parts = [("red", True), ("green", False), ("blue", True)]
    path.write_bytes(b"".join(recording(folder / f"{colour}{path.suffix}", colour, heard) for colour, heard in parts))
    return path


def beeps_s(path: Path) -> list[float]:
    """When beeps begin, by the time of the file."""
    loud = [
        piece.start_s + float(at) / RATE_HZ
        for piece in sound_pieces(path, path.name)
        for at in np.flatnonzero(np.abs(piece.samples) > 0.2)
    ]
    return [time_s for before_s, time_s in zip([-9.0, *loud], loud, strict=False) if time_s - before_s > 0.5]


@needs_ffmpeg
def test_sound_follows_the_clock_of_the_pictures(joined: Path) -> None:
    with open_video(joined) as video:
        shown = [
            (each.time_s, each.frame.to_ndarray(format="rgb24").mean((0, 1)).argmax()) for each in video.samples(25)
        ]
        zero_s, end_s = video.start_s, video.end_s
    assert end_s - zero_s == pytest.approx(JOINED_S, abs=0.1)
    changes_s = [after[0] - zero_s for before, after in pairwise(shown) if before[1] != after[1]]
    assert changes_s == pytest.approx([PART_S, 2 * PART_S], abs=0.1)
    assert [each - zero_s for each in beeps_s(joined)] == pytest.approx(BEEPS_S, abs=0.15)
    last_s = read_edit_facts(joined, "joined").times_s[-1:]  # program streams do not say when each picture is shown
    assert last_s == pytest.approx([end_s - 0.04] if joined.suffix == ".ts" else [], abs=0.01)


@needs_ffmpeg
def test_clips_and_streams_have_the_sound_of_their_pictures(joined: Path, tmp_path: Path) -> None:
    with open_video(joined) as video:
        zero_s, end_s = video.start_s, read_to_end(video)
    out, from_s = tmp_path / "clip.mp4", zero_s + 2 * PART_S + 0.5
    ranges = [(from_s, from_s + 2), (zero_s + PART_S + 1, zero_s + PART_S + 3), (zero_s + 0.5, zero_s + 2.5)]
    clips = encode_ranges(joined, "joined", out, ranges)
    assert [each.has_sound for each in clips] == [True, False, True]
    assert beeps_s(out) == pytest.approx([0.5, 4.5], abs=0.15), "the green recording between them is silent"
    with pytest.raises(VideoError, match="begin anew"):
        copy_clip(joined, "joined", tmp_path / "copy.mp4", from_s, from_s + 2)
    data = io.BytesIO()
    write_stream(str(joined), "remuxed", from_s, end_s, SimpleNamespace(write=data.write))
    streamed = tmp_path / "stream.mp4"
    streamed.write_bytes(data.getvalue())
    assert beeps_s(streamed) == pytest.approx([0.5], abs=0.15)
    with av.open(str(streamed)) as file:
        colours = [frame.to_ndarray(format="rgb24").mean((0, 1)).argmax() for frame in file.decode(video=0)]
    assert set(colours) == {2} and len(colours) == pytest.approx(25 * 3.5, abs=3)


def read_to_end(video: VideoReader) -> float:
    """The end of the pictures, which is known once they were read."""
    deque(video.samples(1.0), maxlen=0)
    return video.end_s


@needs_ffmpeg
def test_only_a_file_whose_last_times_are_not_those_of_its_end_is_looked_through(joined: Path) -> None:
    with open_video(joined) as video:
        end_s = read_to_end(video)
    red = joined.with_stem("red")
    assert file_clock(red, "red") == find_clock(lambda: open_source(str(red)), "red", 10 + PART_S) == UNBROKEN
    found = find_clock(lambda: open_source(str(joined)), "joined", end_s)
    assert found == file_clock(joined, "joined") and len(found.stretches) == 3
