"""Clips of films that are hard to search, opened again: every picture is the one of its time, or there is no clip."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from kinodex.pipeline.decoding.stream import choose_stream, open_container
from kinodex.pipeline.errors import VideoError, WrongClip
from kinodex.pipeline.media.clips import check_clip, copy_clip, copy_suffix, encode_ranges, small_picture
from kinodex.pipeline.media.source import ClipFile, Expected, timed_frames
from tests.support.ffmpeg import ffmpeg, grey_film, needs_ffmpeg

H264 = ("-c:v", "libx264", "-bf", "3", "-g", "60", "-x264-params", "b-adapt=0")
MPEG2 = ("-c:v", "mpeg2video", "-bf", "2", "-g", "15", "-q:v", "2")
FILMS: dict[str, tuple[str, ...]] = {
    "broadcast.ts": (*H264, "-c:a", "aac"),
    "open.ts": ("-c:v", "libx264", "-bf", "3", "-g", "60", "-x264-params", "b-adapt=0:open-gop=1", "-c:a", "aac"),
    "camera.m2ts": (*H264, "-c:a", "ac3", "-f", "mpegts", "-mpegts_m2ts_mode", "1"),
    "old.mpg": (*MPEG2, "-c:a", "mp2"),
    "disc.vob": (*MPEG2, "-c:a", "ac3", "-f", "vob"),
    "packed.avi": ("-c:v", "mpeg4", "-bf", "2", "-g", "60", "-q:v", "2", "-c:a", "mp3"),
    "pictures.avi": ("-c:v", "mjpeg", "-q:v", "2", "-an"),
    "video.ogv": ("-c:v", "libtheora", "-g", "60", "-q:v", "8", "-an"),
    "video.webm": ("-c:v", "libvpx", "-g", "60", "-an"),
    "video.wmv": ("-c:v", "wmv2", "-g", "60", "-q:v", "2", "-an"),
}
NEVER_COPIED = {
    "old.mpg": "not all of its packets say when they are shown; cut exactly",
    "disc.vob": "not all of its packets say when they are shown; cut exactly",
    "packed.avi": "not all of its packets say when they are shown; cut exactly",
    "video.wmv": "matroska cannot hold wmv2; cut exactly",
}
PARTS = ((0.0, 0.1), (0.11, 0.3), (0.333, 0.45), (0.51, 0.52), (0.8, 1.0))
"""Ranges, as parts of the whole film: on its first instant, between two pictures, shorter than three, to its end."""
Shown = tuple[float, float, int]
"""From and until when, and the grey's number."""


@pytest.fixture(scope="module", params=FILMS)
def film(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return grey_film(tmp_path_factory.mktemp("film") / request.param, *FILMS[request.param])


def pictures(path: Path) -> list[Shown]:
    """All that a file shows, decoded from its beginning."""
    with open_container(path, path.name) as source:
        frames = timed_frames(source, choose_stream(source, path.name))
        return [(float(begin), float(until), level(frame)) for begin, until, frame in frames]


def level(frame: Any) -> int:
    mean = float(frame.to_ndarray(format="gray").mean())
    return round((mean * 219 / 255 + 16 - 20) / 16)


@needs_ffmpeg
def test_an_exact_clip_shows_every_picture_of_its_range(film: Path, tmp_path: Path) -> None:
    whole = pictures(film)
    begin_s, length_s = whole[0][0], whole[-1][1] - whole[0][0]
    for number, (first, after) in enumerate(PARTS):
        start_s, end_s = begin_s + first * length_s, begin_s + after * length_s
        (clip,) = encode_ranges(film, film.name, tmp_path / f"{number}.mp4", [(start_s, end_s)])
        check_clip(clip.path, film.name, clip.expected)
        asked = [each for each in whole if each[1] - start_s > 2e-5 and end_s - each[0] > 2e-5]
        ours = pictures(clip.path)
        assert [grey for *_, grey in ours] == [grey for *_, grey in asked]
        assert [time_s for time_s, *_ in ours] == pytest.approx(
            [max(time_s - start_s, 0.0) for time_s, *_ in asked], abs=2e-5
        )
        assert clip.start_s == start_s and clip.end_s == pytest.approx(end_s, abs=2e-5)
        assert ours[-1][1] == pytest.approx(end_s - start_s, abs=1e-3)


@needs_ffmpeg
def test_a_copied_clip_shows_every_picture_of_its_range_or_is_none(film: Path, tmp_path: Path) -> None:
    whole = pictures(film)
    begin_s, length_s = whole[0][0], whole[-1][1] - whole[0][0]
    for number, (first, after) in enumerate(PARTS):
        start_s, end_s = begin_s + first * length_s, begin_s + after * length_s
        out = tmp_path / f"{number}{copy_suffix(film, film.name)}"
        if film.name in NEVER_COPIED:
            with pytest.raises(VideoError, match=NEVER_COPIED[film.name]):
                copy_clip(film, film.name, out, start_s, end_s)
            assert not out.exists()
            continue
        clip = copy_clip(film, film.name, out, start_s, end_s)
        check_clip(out, film.name, clip.expected)
        assert clip.start_s <= start_s + 1e-6
        asked = [grey for time_s, _, grey in whole if clip.start_s - 1e-6 <= time_s < end_s - 1e-3]
        assert [grey for _, _, grey in pictures(out)][: len(asked)] == asked


@needs_ffmpeg
def test_a_long_picture_at_the_end_is_held(tmp_path: Path) -> None:
    slow = "setpts='if(lt(N,49),N/25,3)/TB',select='lt(n,50)'"
    film = grey_film(
        tmp_path / "vfr.mkv", "-c:v", "libx264", "-g", "50", options=("-vf", slow, "-fps_mode", "vfr"), sound=False
    )
    (clip,) = encode_ranges(film, "film", tmp_path / "clip.mp4", [(1.0, 2.9)])
    *_, (begin_s, until_s, grey) = pictures(clip.path)
    assert grey == 48 % 12 and (begin_s, until_s) == pytest.approx((48 / 25 - 1.0, 1.9), abs=1e-3)
    with av.open(str(clip.path)) as container:
        assert (container.duration or 0) / 1e6 == pytest.approx(clip.end_s - clip.start_s, abs=2e-3)


@needs_ffmpeg
def test_a_clip_that_shows_anything_else_is_wrong(tmp_path: Path) -> None:
    film = grey_film(tmp_path / "film.mp4", *H264, sound=False)
    (clip,) = encode_ranges(film, "film", tmp_path / "clip.mp4", [(2.0, 3.0)])
    check_clip(clip.path, "film", clip.expected)
    assert isinstance(clip, ClipFile) and [round(each.time_s, 2) for each in clip.expected] == [0.0, 1.0]
    (later,) = encode_ranges(film, "film", tmp_path / "later.mp4", [(2.16, 3.16)])
    with pytest.raises(WrongClip, match=r"film: its clip shows another picture at 0\.001 s than the video"):
        check_clip(later.path, "film", clip.expected)
    ffmpeg("-i", clip.path, "-t", "0.8", "-c:v", "libx264", tmp_path / "short.mp4")
    with pytest.raises(WrongClip, match=r"film: its clip shows nothing at 0\.999 s"):
        check_clip(tmp_path / "short.mp4", "film", clip.expected)
    white = Expected(0.5, small_picture(np.full((9, 16, 3), 255, np.uint8)))
    with pytest.raises(WrongClip):
        check_clip(clip.path, "film", [white])
