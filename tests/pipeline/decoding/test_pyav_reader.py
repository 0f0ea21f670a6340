"""Awkward and damaged files give their readable frames, or an error of the right class, and never hang."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import accumulate
from pathlib import Path

import numpy as np
import pytest

from kinodex.pipeline.decoding.open import open_video, probe
from kinodex.pipeline.errors import NotAVideo, NothingDecodes, PipelineError
from kinodex.pipeline.images import rgb_scaler
from tests.support.ffmpeg import ffmpeg, ffmpeg_shows, needs_ffmpeg, psnr_db, shown_times

av = pytest.importorskip("av")

# Name: distinct frames at 1 fps, first time, end.
READABLE = {
    "decord__corrupted.mp4": (5, 0.0, 5.0),
    "decord__video_180.mov": (1, 0.0, 0.1),
    "decord__video_90.mov": (1, 0.0, 0.1),
    "mediabunny__annex-b.mp4": (1, 0.0, 0.5),
    "mediabunny__av1-aac.avi": (2, 0.0, 1.04),
    "mediabunny__edit-list-discard.mp4": (2, 0.0, 1.96),
    "mediabunny__frames.webm": (4, 0.0, 3.333),
    "mediabunny__hevc-aac.avi": (1, 0.08, 1.08),
    "mediabunny__hevc.ts": (5, 1.483333, 6.483333),
    "mediabunny__mpeg4-aac.mov": (1, 0.0, 1.0),
    "mediabunny__no-initial-keyframe.ts": (1, 114.847, 115.346367),
    "mediabunny__rotate-buck-bunny.mp4": (2, 0.083333, 1.958333),
    "mediabunny__sar_2x1.mp4": (5, 0.0, 5.0),
    "mediabunny__test-mkv-ass.mkv": (10, 0.021, 10.021),
    "mediabunny__test-mkv-srt.mkv": (10, 0.021, 10.021),
    "mediabunny__test-mov-tx3g.mov": (10, 0.0, 10.0),
    "mediabunny__test-mp4-webvtt.mp4": (10, 0.0, 10.0),
    "mediabunny__whatdoesitdo.mp4": (1, 4900.09, 4920.414367),
    "moviepy__no_duration.webm": (5, 0.0, 4.938),
    "pixeltable__test_13_frames.mp4": (7, 0.0, 6.5),
    "pyscenedetect__counter.mp4": (3, 0.0, 3.0),
    "pyscenedetect__delayed_start.mp4": (1, 1.075, 2.035),
    "simpl__track_audiosprites_video.webm": (14, 0.0, 13.888),
    "subtitleedit__sample_MKV_SRT.mkv": (5, 0.0, 4.934),
    "subtitleedit__sample_MP4_SRT.mp4": (5, 0.0, 4.966667),
    "torchcodec__h264_10bits.mp4": (1, 0.0, 1.0),
    "torchcodec__h265_video.mp4": (1, 0.0, 1.0),
    "torchcodec__var_fps_video.mp4": (15, 0.0, 14.966667),
}


# FFmpeg 5.1 decodes nothing of the first; of the second its fps filter trips over the missing times at the end.
NO_REFERENCE = {"mediabunny__whatdoesitdo.mp4", "mediabunny__hevc-aac.avi"}


def times_at(path: Path, fps: float = 1) -> tuple[list[tuple[int, float]], float, int]:
    """(number, time) of each sample, the end, and the errors."""
    with open_video(path) as video:
        found = [(sample.number, sample.time_s) for sample in video.samples(fps)]
        return found, video.end_s, video.decode_errors


def test_no_readable_file_is_forgotten(media: Path) -> None:
    readable = {path.name for path in (media / "awkward").iterdir() if is_readable(path)}
    assert readable == set(READABLE)


def is_readable(path: Path) -> bool:
    try:
        return bool(probe(path))
    except PipelineError:
        return False


@pytest.mark.parametrize("name", READABLE)
def test_readable_files_give_what_they_hold(media: Path, name: str) -> None:
    found, end_s, errors = times_at(media / "awkward" / name)
    frames, start_s, expected_end_s = READABLE[name]
    assert (len(found), found[0][0]) == (frames, 0)
    assert found[0][1] == pytest.approx(start_s, abs=1e-6)
    assert end_s == pytest.approx(expected_end_s, abs=1e-6)
    damaged = {"decord__corrupted.mp4", "mediabunny__annex-b.mp4"}
    assert (errors > 0) == (name in damaged)


@needs_ffmpeg
@pytest.mark.parametrize("fps", [1, 4])
@pytest.mark.parametrize("name", sorted(set(READABLE) - NO_REFERENCE))
def test_readable_files_show_what_ffmpeg_shows(media: Path, name: str, fps: int) -> None:
    path = media / "awkward" / name
    with open_video(path) as video:
        metadata = video.metadata
        to_rgb = rgb_scaler(Fraction(metadata.sample_aspect_ratio).limit_denominator(1000), 160, 1)
        ours = [(sample.number, sample.time_s, to_rgb(sample.frame)) for sample in video.samples(fps)]
    printed = [float(time) for time in shown_times(path, metadata.stream_index) if time]
    height, width = ours[0][2].shape[:2]
    shown = ffmpeg_shows(path, metadata.stream_index, fps, width, height)
    for number, time_s, rgb in ours:
        instant = printed[0] + number / fps + 1e-6
        assert f"{time_s:.6f}" == f"{max(time for time in printed if time <= instant):.6f}"
        # FFmpeg 5.1 sets the chroma of this hard-edged test pattern half a pixel beside where H.264 has it.
        assert psnr_db(rgb, shown[number]) > (25 if name == "torchcodec__h264_10bits.mp4" else 35)


@needs_ffmpeg
@pytest.mark.parametrize("container", ["mp4", "mkv", "ts", "avi", "mpg"])
def test_a_file_cut_short_gives_its_beginning(media: Path, tmp_path: Path, container: str) -> None:
    whole, cut = tmp_path / f"whole.{container}", tmp_path / f"cut.{container}"
    codec = ["-c:v", "mpeg2video"] if container == "mpg" else ["-c:v", "libx264"]
    clip = media / "clips" / "torchcodec__dog_eating_854132.mp4"
    ffmpeg("-i", clip, "-an", *codec, "-vf", "scale=160:90", "-movflags", "+faststart", whole)
    full, _, _ = times_at(whole)
    data = whole.read_bytes()
    cut.write_bytes(data[: len(data) * 6 // 10])
    part, end_s, _ = times_at(cut)
    assert 4 < len(part) < len(full)
    assert [number for number, _ in part] == [number for number, _ in full[: len(part)]]
    assert end_s < full[-1][1]


def test_an_mp4_whose_index_is_cut_off_is_not_a_video(media: Path, tmp_path: Path) -> None:
    path = tmp_path / "cut.mp4"
    path.write_bytes((media / "clips" / "moviepy__sintel_trailer_52s.mp4").read_bytes()[:20_000])
    with pytest.raises((NotAVideo, NothingDecodes)):
        probe(path)


@needs_ffmpeg
@pytest.mark.parametrize("container", ["mp4", "mkv", "ts", "webm"])
@pytest.mark.parametrize("kind", ["zeros", "random"])
def test_damage_in_the_middle_loses_only_what_is_damaged(
    media: Path, tmp_path: Path, container: str, kind: str
) -> None:
    path = tmp_path / f"damaged.{container}"
    codec = (
        ["-c:v", "libvpx", "-deadline", "realtime", "-cpu-used", "8"] if container == "webm" else ["-c:v", "libx264"]
    )
    clip = media / "clips" / "torchcodec__dog_eating_854132.mp4"
    codec += ["-g", "25", "-movflags", "+faststart"]
    ffmpeg("-i", clip, "-an", "-t", "8", *codec, "-vf", "scale=160:90", path)
    full, end_s, _ = times_at(path)
    data = bytearray(path.read_bytes())
    middle, size = len(data) // 2, len(data) // 40
    data[middle : middle + size] = bytes(size) if kind == "zeros" else random.Random(1).randbytes(size)
    path.write_bytes(data)
    found, damaged_end_s, errors = times_at(path)
    assert errors > 0 or container == "webm"  # VP8 turns any bytes into a picture without complaint
    assert len(found) >= len(full) - 3
    assert damaged_end_s == pytest.approx(end_s, abs=0.5)


@needs_ffmpeg
def test_random_damage_never_crashes_and_never_runs_on(media: Path, tmp_path: Path) -> None:
    source = media / "awkward" / "pyscenedetect__counter.mp4"
    data, dice = source.read_bytes(), random.Random(7)
    path = tmp_path / "fuzzed.mp4"
    outcomes = set()
    for _ in range(60):
        broken = bytearray(data)
        for _ in range(dice.randrange(1, 60)):
            broken[dice.randrange(len(broken))] = dice.randrange(256)
        path.write_bytes(broken[: dice.randrange(len(broken) // 2, len(broken) + 1)])
        try:
            found, _, _ = times_at(path)
            assert len(found) <= 30
            outcomes.add("frames")
        except PipelineError as error:
            outcomes.add(type(error).__name__)
    assert "frames" in outcomes


@needs_ffmpeg
@pytest.mark.parametrize("container", ["h264", "avi", "mpg", "wmv", "flv", "mov", "3gp", "ogv", "mxf", "gif"])
def test_other_containers(tmp_path: Path, container: str) -> None:
    path = tmp_path / f"made.{container}"
    size = "352x288"
    ffmpeg("-f", "lavfi", "-i", f"testsrc2=size={size}:rate=25:duration=4", "-pix_fmt",
           "rgb8" if container == "gif" else "yuv420p", path)  # fmt: skip
    found, end_s, errors = times_at(path)
    assert ([number for number, _ in found], errors) == ([0, 1, 2, 3], 0)
    assert end_s - found[0][1] == pytest.approx(4, abs=0.1)


X264 = "b-adapt=0:scenecut=0:b-pyramid=none"


def write_film(path: Path, steps_ms: list[int]) -> None:
    """H.264 with two B-frames in a row, each frame noise and shown for its own time."""
    times_ms = [0, *accumulate(steps_ms[:-1])]
    dice = np.random.default_rng(0)
    with av.open(str(path), "w") as file:
        stream = file.add_stream("libx264", rate=25, options={"bf": "2", "x264-params": X264})
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        stream.codec_context.time_base = Fraction(1, 1000)
        for time_ms in times_ms:
            frame = av.VideoFrame.from_ndarray(dice.integers(0, 255, (48, 64, 3), np.uint8), format="rgb24")
            frame.pts, frame.time_base = time_ms, Fraction(1, 1000)
            file.mux(stream.encode(frame.reformat(format="yuv420p")))
        file.mux(stream.encode())


@pytest.mark.parametrize("damaged", [False, True])
@pytest.mark.parametrize(
    ("steps_ms", "times"),
    [
        ([40] * 18 + [5000, 40, 40], [0.0, 0.72]),  # FFmpeg: the last one lasts 5 s, and is a sample
        ([40] * 18 + [1000] * 3, [0.0, 0.72, 1.72, 2.72]),
    ],
)
def test_the_last_frame_in_time_does_not_last_as_long_as_one_sent_after_it(
    tmp_path: Path, steps_ms: list[int], times: list[float], damaged: bool
) -> None:
    """Of B-frames at a variable rate; with a plan, and where damage has all decoded."""
    path = tmp_path / "film.mp4"
    write_film(path, steps_ms)
    if damaged:
        with av.open(str(path)) as file:
            position = [packet.pos for packet in file.demux(video=0) if packet.size][4]
        with path.open("r+b") as bytes_:
            bytes_.seek(position or 0)
            bytes_.write(b"\xff" * 60)
    with open_video(path) as video:
        found = [round(sample.time_s, 3) for sample in video.samples(1.0)]
        assert video.end_s == pytest.approx(sum(steps_ms) / 1000)
        assert (video.decode_errors > 0) == damaged
    assert found == times
