"""Awkward and broken files give their readable frames or an error of the right class, and never hang."""

from __future__ import annotations

import os
import random
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from pipeline.decoding.open import open_video, probe
from pipeline.errors import (
    EmptyFile,
    NotAVideo,
    NothingDecodes,
    NoVideoStream,
    PipelineError,
    SourceForbidden,
    SourceMissing,
)
from pipeline.images.convert import rgb_scaler
from tests.support.ffmpeg import ffmpeg, ffmpeg_shows, needs_ffmpeg, psnr_db, shown_times

BROKEN = {
    "mediabunny__multiple-aac-tracks.mp4": NoVideoStream,
    "mediabunny__segment.mp4": NotAVideo,
    "mediabunny__vorbis-eos.ogg": NoVideoStream,
    "moviepy__doc_medias_result.webm": EmptyFile,
    "moviepy__with-attached-pic.mp3": NoVideoStream,
    "pixeltable__bad_video.mp4": NotAVideo,
}
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


def test_no_awkward_file_is_forgotten(media: Path) -> None:
    assert {path.name for path in (media / "awkward").iterdir()} == set(BROKEN) | set(READABLE)


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files_say_what_they_are_in_one_line(media: Path, name: str) -> None:
    with pytest.raises(BROKEN[name]) as caught:
        probe(media / "awkward" / name)
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.stage == "open"


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


def test_times_of_an_avi_without_presentation_times_are_those_of_ffprobe(media: Path) -> None:
    found, _, _ = times_at(media / "awkward" / "mediabunny__hevc-aac.avi", fps=1000)
    assert [time_s for _, time_s in found] == [(2 + i) / 25 for i in range(25)]


def test_the_larger_stream_is_chosen_and_never_cover_art(media: Path) -> None:
    metadata = probe(media / "clips" / "torchcodec__nasa_13013.mp4")
    assert (metadata.stream_index, metadata.width_px, metadata.height_px) == (3, 480, 270)
    metadata = probe(media / "awkward" / "subtitleedit__sample_MP4_SRT.mp4")
    assert (metadata.stream_index, metadata.codec, metadata.has_audio) == (1, "mpeg4", True)


@needs_ffmpeg
def test_a_video_with_cover_art_gives_the_video(media: Path, tmp_path: Path) -> None:
    video, cover, both = media / "clips" / "moviepy__chaplin.mp4", tmp_path / "cover.png", tmp_path / "both.mp4"
    ffmpeg("-f", "lavfi", "-i", "color=red:size=2000x1000", "-frames:v", "1", cover)
    ffmpeg("-i", cover, "-i", video, "-map", "0", "-map", "1:v", "-c:v:0", "png", "-c:v:1", "copy",
           "-disposition:v:0", "attached_pic", both)  # fmt: skip
    metadata = probe(both)
    assert (metadata.codec, metadata.width_px) == ("h264", 640)


@pytest.mark.parametrize(
    ("name", "size"),
    [("decord__video_90.mov", (320, 568)), ("mediabunny__rotate-buck-bunny.mp4", (1080, 1920)),
     ("decord__video_180.mov", (568, 320)), ("mediabunny__sar_2x1.mp4", (1280, 360))],
)  # fmt: skip
def test_facts_are_as_displayed(media: Path, name: str, size: tuple[int, int]) -> None:
    metadata = probe(media / "awkward" / name)
    assert (metadata.width_px, metadata.height_px) == size


@pytest.mark.parametrize(
    ("name", "content", "error"),
    [
        ("text.mp4", b"these are only words\n" * 500, NotAVideo),
        ("subtitles.mp4", b"1\n00:00:01,000 --> 00:00:02,000\nHello\n\n" * 50, NoVideoStream),
        ("playlist.mp4", b"#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\n/etc/hostname\n#EXT-X-ENDLIST\n", NotAVideo),
        ("page.mp4", b"<!DOCTYPE html><html><body>404 not found</body></html>" * 20, NotAVideo),
        ("odd:name.mp4", b"\x00" * 5000, NotAVideo),
        ("zero.mp4", b"", EmptyFile),
    ],
)
def test_files_that_are_no_video(tmp_path: Path, name: str, content: bytes, error: type[PipelineError]) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(error):
        probe(path)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(SourceMissing, match="no such file"):
        probe(tmp_path / "nothing.mp4")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission(media: Path, tmp_path: Path) -> None:
    path = tmp_path / "locked.mp4"
    path.write_bytes((media / "awkward" / "pyscenedetect__counter.mp4").read_bytes())
    path.chmod(0)
    with pytest.raises(SourceForbidden):
        probe(path)


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
def test_clocks_that_start_anew_go_on(media: Path, tmp_path: Path) -> None:
    """Two transport streams joined end to end: the second's clock starts below the first's end."""
    part, joined = tmp_path / "part.ts", tmp_path / "joined.ts"
    clip = media / "clips" / "moviepy__chaplin.mp4"
    ffmpeg("-i", clip, "-an", "-t", "6", "-c:v", "libx264", "-bf", "0", "-vf", "scale=160:90", part)
    joined.write_bytes(part.read_bytes() * 2)
    found, end_s, _ = times_at(joined)
    assert len(found) == 12
    assert end_s - found[0][1] == pytest.approx(12, abs=0.2)


@needs_ffmpeg
def test_a_jump_of_years_costs_nothing(tmp_path: Path) -> None:
    path = tmp_path / "years.mkv"
    jump = "setpts='if(lt(N,50),N/25,N/25+100000000)/TB'"
    ffmpeg("-f", "lavfi", "-i", "testsrc=size=64x64:rate=25:duration=4", "-vf", jump, "-vsync", "0",
           "-c:v", "ffv1", "-enc_time_base", "1/1000", path)  # fmt: skip
    found, end_s, _ = times_at(path)
    assert [number for number, _ in found] == [0, 1, 2, 3]
    assert end_s == pytest.approx(4, abs=0.01)


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


@needs_ffmpeg
@pytest.mark.parametrize(("codec", "pix_fmt"), [("qtrle", "argb"), ("prores_ks", "yuva444p10le"), ("png", "rgba")])
def test_transparent_pixels_lie_over_black(tmp_path: Path, codec: str, pix_fmt: str) -> None:
    path = tmp_path / "clear.mov"
    ffmpeg("-f", "lavfi", "-i", "color=white:size=64x64:rate=5:duration=1,format=rgba,"
           "geq=r=255:g=255:b=255:a='if(lt(X,32),255,0)'", "-c:v", codec, "-pix_fmt", pix_fmt, path)  # fmt: skip
    with open_video(path) as video:
        rgb = rgb_scaler(Fraction(1), 64, 64)(next(video.samples(1)).frame)
    assert rgb[:, :28].min() > 245
    assert rgb[:, 36:].max() < 10


@needs_ffmpeg
def test_interlaced_frames_do_not_comb(tmp_path: Path) -> None:
    """A white bar that moves between two fields: woven, every second line would differ at its edge."""
    path = tmp_path / "interlaced.mpg"
    moving = "color=black:size=320x240:rate=50:duration=2,drawbox=x='0':y=0:w=40:h=240:c=white:t=fill"
    ffmpeg("-f", "lavfi", "-i", f"{moving},scroll=horizontal=-0.1,tinterlace=interleave_top,fieldorder=tff",
           "-c:v", "mpeg2video", "-flags", "+ilme+ildct", "-top", "1", "-q:v", "2", path)  # fmt: skip
    with open_video(path) as video:
        assert video.metadata.interlaced
        samples = [(s.time_s, s.frame) for s in video.samples(5)]
    frame = samples[3][1]
    woven = frame.to_ndarray(format="gray").astype(int)
    ours = rgb_scaler(Fraction(1), 320, 240)(frame)[..., 0].astype(int)
    assert ours.shape == (240, 320)
    assert np.abs(woven[1:] - woven[:-1]).mean() > 5 * np.abs(ours[1:] - ours[:-1]).mean()


@needs_ffmpeg
@pytest.mark.parametrize(("flips", "matrix"), [("hflip", (-1, 0, 0, 1)), ("vflip", (1, 0, 0, -1))])
def test_mirrored_pictures_are_set_right(
    media: Path, tmp_path: Path, flips: str, matrix: tuple[int, int, int, int]
) -> None:
    clip, mirrored = media / "clips" / "pixeltable__bangkok_half_res.mp4", tmp_path / "mirrored.mp4"
    data = bytearray(clip.read_bytes())
    header = data.index(b"tkhd")
    at = header + 4 + 40 if data[header + 4] == 0 else header + 4 + 52
    for place, value in zip((0, 4, 12, 16), matrix, strict=True):
        data[at + place : at + place + 4] = (value << 16).to_bytes(4, "big", signed=True)
    mirrored.write_bytes(data)
    with open_video(clip) as video:
        plain = rgb_scaler(Fraction(1), 320, 1)(next(video.samples(1)).frame)
    with open_video(mirrored) as video:
        ours = rgb_scaler(Fraction(1), 320, 1)(next(video.samples(1)).frame)
    assert np.array_equal(ours, plain[:, ::-1] if flips == "hflip" else plain[::-1])


@needs_ffmpeg
@pytest.mark.parametrize("pix_fmt", ["yuv420p10le", "yuv444p", "yuv422p12le", "gray", "gbrp", "yuvj420p"])
def test_pixel_formats_give_the_colours_of_ffmpeg(tmp_path: Path, pix_fmt: str) -> None:
    path = tmp_path / "made.mkv"
    ffmpeg("-f", "lavfi", "-i", "testsrc2=size=320x240:rate=1:duration=1", "-c:v", "ffv1", "-pix_fmt", pix_fmt, path)
    with open_video(path) as video:
        ours = rgb_scaler(Fraction(1), 160, 1)(next(video.samples(1)).frame)
    assert psnr_db(ours, ffmpeg_shows(path, 0, 1, 160, 120)[0]) > 40
