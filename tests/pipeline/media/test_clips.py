"""Clips, exact and copied: which pictures they hold and when, their sound and subtitles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from numpy.typing import NDArray

from kinodex.pipeline.decoding.stream import choose_stream, open_container
from kinodex.pipeline.errors import VideoError, WrongClip
from kinodex.pipeline.media.clip_check import check_clip, small_picture
from kinodex.pipeline.media.clip_copy import copy_clip, copy_suffix
from kinodex.pipeline.media.clip_encoding import encode_ranges
from kinodex.pipeline.media.clip_file import ClipFile, Expected, container_suffix
from kinodex.pipeline.media.clip_subtitles import add_subtitles
from kinodex.pipeline.media.pictures import timed_frames
from kinodex.pipeline.subtitles.cues import Cue
from kinodex.pipeline.subtitles.lines import embedded_lines
from kinodex.pipeline.video_writer import encode_video
from tests.support.ffmpeg import ffmpeg, grey_film, needs_ffmpeg

FPS = 10


LEVELS = 12
"""Grey of a frame: 20 for each step, in a cycle, far enough apart for an encoder to keep them."""


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six seconds, ten frames a second, each of one grey, with key frames two seconds apart."""
    path = tmp_path_factory.mktemp("film") / "film.mp4"
    frames = (np.full((64, 96, 3), 10 + 20 * (number % LEVELS), np.uint8) for number in range(6 * FPS))
    encode_video(frames, path, width_px=96, height_px=64, fps=FPS, key_frame_s=2)
    return path


def shown(path: Path) -> list[tuple[float, int]]:
    """Times of a clip's pictures, and the number of the frame, within a cycle, that each shows."""
    with av.open(str(path)) as container:
        frames = [(frame.time or 0.0, frame.to_ndarray(format="rgb24").mean()) for frame in container.decode(video=0)]
    return [(round(time_s, 3), round((level - 10) / 20)) for time_s, level in frames]


def test_an_exact_clip_holds_what_is_shown_in_its_ranges(film: Path, tmp_path: Path) -> None:
    (clip,) = encode_ranges(film, "film", tmp_path / "clip.mp4", [(2.55, 3.25)])
    assert (clip.start_s, clip.way, clip.has_sound) == (2.55, "encoded", False)
    assert clip.end_s == pytest.approx(3.25)
    times = [0.0, *(round(2.6 + step / FPS - 2.55, 3) for step in range(7))]
    assert shown(clip.path) == list(zip(times, [number % LEVELS for number in range(25, 33)], strict=True))
    (clip,) = encode_ranges(film, "film", tmp_path / "over the end.mp4", [(5.8, 60.0)])
    assert clip.end_s == pytest.approx(6.0)
    assert [number for _, number in shown(clip.path)] == [58 % LEVELS, 59 % LEVELS]
    clips = encode_ranges(film, "film", tmp_path / "two.mp4", [(4.0, 4.3), (1.0, 1.2)])
    assert [(clip.start_s, round(clip.end_s, 3)) for clip in clips] == [(4.0, 4.3), (1.0, 1.2)]
    numbers = [number % LEVELS for number in (40, 41, 42, 10, 11)]
    assert shown(clips[0].path) == list(zip((0.0, 0.1, 0.2, 0.3, 0.4), numbers, strict=True))


def samples(path: Path, start_s: float, length_s: float) -> NDArray[np.float32]:
    """Sound of a file from a time on, as one channel at 16 kHz."""
    resampler = av.AudioResampler("flt", "mono", 16_000)
    with av.open(str(path)) as container:
        frames = [each for frame in container.decode(audio=0) for each in resampler.resample(frame)]
    begin_s = frames[0].time or 0.0
    sound = np.concatenate([frame.to_ndarray()[0] for frame in frames])
    first = round((start_s - begin_s) * 16_000)
    return sound[first : first + round(length_s * 16_000)]


@pytest.mark.slow
def test_sound_is_that_of_the_range(media: Path, tmp_path: Path) -> None:
    film = media / "clips" / "moviepy__sintel_trailer_52s.mp4"
    encode_ranges(film, "sintel", tmp_path / "clip.mp4", [(40.0, 40.5), (21.3, 23.3)])
    theirs, later = samples(film, 21.8, 1.2), samples(film, 21.85, 1.2)
    ours = samples(tmp_path / "clip.mp4", 1.0, 1.2)
    assert np.corrcoef(ours, theirs)[0, 1] > 0.98
    assert np.corrcoef(ours, later)[0, 1] < 0.9, "the comparison must see an offset of 50 ms"
    (clip,) = encode_ranges(film, "sintel", tmp_path / "one.mp4", [(21.3, 23.3)])
    assert clip.has_sound
    assert np.corrcoef(samples(clip.path, 0.5, 1.2), theirs)[0, 1] > 0.98


def test_a_clip_begins_at_the_key_frame_before_and_loses_nothing(film: Path, tmp_path: Path) -> None:
    with av.open(str(film)) as container:
        keys = [(each.pts or 0) * (each.time_base or 0) for each in container.demux(video=0) if each.is_keyframe]
    begin_s = float(max(key for key in keys if key <= 2.35))
    clip = copy_clip(film, "film", tmp_path / "clip.mp4", 2.35, 3.25)
    assert (clip.start_s, clip.way, clip.has_sound) == (begin_s, "copied", False)
    assert clip.end_s >= 3.25
    until_the_end = [number for time_s, number in shown(clip.path) if begin_s + time_s < 3.25]
    assert until_the_end == [number % LEVELS for number in range(round(begin_s * FPS), 33)]
    ours, first = decoded(clip.path)[: len(until_the_end)], round(begin_s * FPS)
    assert ours == decoded(film)[first : first + len(ours)], "the same pictures to the last bit"


def decoded(path: Path, start_s: float = 0.0) -> list[bytes]:
    with av.open(str(path)) as container:
        frames = [frame for frame in container.decode(video=0) if (frame.time or 0.0) >= start_s - 1e-6]
    return [frame.to_ndarray().tobytes() for frame in frames]


@pytest.mark.slow
def test_real_clips_are_copied_to_the_bit(media: Path, tmp_path: Path) -> None:
    for name, suffix in {
        "awkward/mediabunny__rotate-buck-bunny.mp4": ".mp4", "awkward/mediabunny__test-mkv-srt.mkv": ".mp4",
        "awkward/mediabunny__av1-aac.avi": ".mp4", "awkward/mediabunny__frames.webm": ".mkv",
    }.items():  # fmt: skip
        source = media / name
        with av.open(str(source)) as container:
            whole_s = (container.duration or 0) / 1e6
        clip = copy_clip(source, name, tmp_path / f"{source.stem}{suffix}", 0.5 * whole_s, 0.6 * whole_s)
        ours, theirs = decoded(clip.path), decoded(source, clip.start_s)
        shown_in_range = round(len(ours) * (0.6 * whole_s - clip.start_s) / (clip.end_s - clip.start_s)) - 1
        assert ours[:shown_in_range] == theirs[:shown_in_range] != [], name
        with av.open(str(source)) as original, av.open(str(clip.path)) as copy:
            assert clip.has_sound == bool(original.streams.audio) == bool(copy.streams.audio), name
            assert next(original.decode(video=0)).rotation == next(copy.decode(video=0)).rotation, name
    with pytest.raises(VideoError, match=r"mp4 cannot hold vp8; write the clip as \.mkv, or cut exactly"):
        copy_clip(media / "clips" / "simpl__gbike_ride_31s.webm", "ride", tmp_path / "clip.mp4", 1.0, 2.0)
    assert not (tmp_path / "clip.mp4").exists()
    assert container_suffix(["h264", "aac"]) == ".mp4" and container_suffix(["vp8", "vorbis"]) == ".mkv"


def test_subtitles_of_a_clip_come_back_as_lines(film: Path, tmp_path: Path) -> None:
    assert copy_suffix(film, "film") == ".mp4"
    for suffix in (".mp4", ".mkv"):
        clip, out = copy_clip(film, "film", tmp_path / f"clip{suffix}", 0.0, 6.0).path, tmp_path / f"out{suffix}"
        add_subtitles(clip, out, [Cue(0.5, 1.5, "Ein <b>Gruß</b> & {more}"), Cue(3.0, 5.9, "second\nline")], "de")
        lines = embedded_lines(out, "clip")
        assert [(line.start_s, line.end_s) for line in lines] == [(0.5, 1.5), (3.0, 5.9)]
        assert "Gruß" in lines[0].text and "& {more}" in lines[0].text
        assert shown(out) == shown(clip)
    cues = [Cue(0.5, 2.0, "one"), Cue(1.0, 3.0, "two"), Cue(4.0, 4.0, "never"), Cue(5.0, 5.5, " ")]
    add_subtitles(tmp_path / "clip.mp4", tmp_path / "together.mp4", cues)
    lines = [line for line in embedded_lines(tmp_path / "together.mp4", "clip") if line.text]
    assert [(line.start_s, line.end_s, line.text.split()) for line in lines] == [
        (0.5, 1.0, ["one"]), (1.0, 3.0, ["two"]),
    ]  # fmt: skip


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


PARTS = ((0.0, 0.1), (0.11, 0.3), (0.51, 0.52), (0.8, 1.0))
"""Ranges, as parts of the whole film: on its first instant, between two pictures, shorter than three, to its end."""


Shown = tuple[float, float, int]
"""From and until when, and the grey's number."""


@pytest.fixture(scope="module", params=FILMS)
def hard(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return grey_film(tmp_path_factory.mktemp("film") / request.param, *FILMS[request.param], length_s=4)


def pictures(path: Path) -> list[Shown]:
    """All that a file shows, decoded from its beginning."""
    with open_container(path, path.name) as source:
        frames = timed_frames(source, choose_stream(source, path.name))
        return [(float(begin), float(until), level(frame)) for begin, until, frame in frames]


def level(frame: Any) -> int:
    mean = float(frame.to_ndarray(format="gray").mean())
    return round((mean * 219 / 255 + 16 - 20) / 16)


@pytest.mark.slow
@needs_ffmpeg
def test_a_clip_of_a_film_hard_to_search_shows_every_picture_of_its_range(hard: Path, tmp_path: Path) -> None:
    whole, name = pictures(hard), hard.name
    begin_s, length_s = whole[0][0], whole[-1][1] - whole[0][0]
    for first, after in PARTS:
        start_s, end_s = begin_s + first * length_s, begin_s + after * length_s
        (clip,) = encode_ranges(hard, name, tmp_path / f"{first}.mp4", [(start_s, end_s)])
        check_clip(clip.path, name, clip.expected)
        asked = [each for each in whole if each[1] - start_s > 2e-5 and end_s - each[0] > 2e-5]
        ours = pictures(clip.path)
        assert [grey for *_, grey in ours] == [grey for *_, grey in asked]
        times_s = [max(time_s - start_s, 0.0) for time_s, *_ in asked]
        assert [time_s for time_s, *_ in ours] == pytest.approx(times_s, abs=2e-5)
        assert clip.start_s == start_s and clip.end_s == pytest.approx(end_s, abs=2e-5)
        assert ours[-1][1] == pytest.approx(end_s - start_s, abs=1e-3)

        out = tmp_path / f"{first} copied{copy_suffix(hard, name)}"
        if name in NEVER_COPIED:
            with pytest.raises(VideoError, match=NEVER_COPIED[name]):
                copy_clip(hard, name, out, start_s, end_s)
            assert not out.exists()
            continue
        clip = copy_clip(hard, name, out, start_s, end_s)
        check_clip(out, name, clip.expected)
        assert clip.start_s <= start_s + 1e-6
        greys = [grey for time_s, _, grey in whole if clip.start_s - 1e-6 <= time_s < end_s - 1e-3]
        assert [grey for _, _, grey in pictures(out)][: len(greys)] == greys


@needs_ffmpeg
def test_a_clip_that_shows_anything_else_is_wrong(tmp_path: Path) -> None:
    film = grey_film(tmp_path / "film.mp4", *H264, sound=False, length_s=4)
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
