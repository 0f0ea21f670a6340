"""Files that are no video say so in one line; a video gives its right stream, facts as displayed, and its times."""

from __future__ import annotations

import struct
from fractions import Fraction
from pathlib import Path

import pytest
from PIL import Image, features

from kinodex.pipeline.decoding.frame_times import NOMINAL_FRAME_S, duration_s, monotonic_frames
from kinodex.pipeline.decoding.open import open_video, probe
from kinodex.pipeline.decoding.stream import choose_stream, open_container
from kinodex.pipeline.errors import (
    EmptyFile,
    NotAVideo,
    NoVideoStream,
    PlaylistRefused,
    SourceMissing,
)
from tests.support.ffmpeg import ffmpeg, needs_ffmpeg


def test_the_larger_stream_is_chosen_and_never_cover_art(media: Path) -> None:
    metadata = probe(media / "clips" / "torchcodec__nasa_13013.mp4")
    assert (metadata.stream_index, metadata.width_px, metadata.height_px) == (3, 480, 270)
    metadata = probe(media / "awkward" / "subtitleedit__sample_MP4_SRT.mp4")
    assert (metadata.stream_index, metadata.codec) == (1, "mpeg4")
    for name, size in {
        "decord__video_90.mov": (320, 568), "mediabunny__rotate-buck-bunny.mp4": (1080, 1920),
        "decord__video_180.mov": (568, 320), "mediabunny__sar_2x1.mp4": (1280, 360),
    }.items():  # fmt: skip
        metadata = probe(media / "awkward" / name)
        assert (metadata.width_px, metadata.height_px) == size, "as displayed"


def test_files_that_are_no_video(tmp_path: Path) -> None:
    movie_header = struct.pack(">I4s12xII80x", 108, b"mvhd", 1000, 1000)
    moov = struct.pack(">I4s", 8 + len(movie_header), b"moov") + movie_header
    for name, content, error, message in (
        ("text.mp4", b"these are only words\n" * 500, NotAVideo, None),
        ("subtitles.mp4", b"1\n00:00:01,000 --> 00:00:02,000\nHello\n\n" * 50, NoVideoStream, None),
        ("playlist.mp4", b"#EXTM3U\n#EXTINF:9,\n/etc/hostname\n#EXT-X-ENDLIST\n", PlaylistRefused, None),
        ("page.mp4", b"<!DOCTYPE html><html><body>404 not found</body></html>" * 20, NotAVideo, None),
        ("odd:name.mp4", bytes(5000), NotAVideo, None),
        ("zero.mp4", b"", EmptyFile, None),
        ("empty.mp4", struct.pack(">I4s4sI4s", 20, b"ftyp", b"isom", 0, b"isom") + moov, NoVideoStream,
         r"^empty\.mp4: holds no stream at all; give a file with moving pictures$"),
    ):  # fmt: skip
        (tmp_path / name).write_bytes(content)
        with pytest.raises(error, match=message):
            probe(tmp_path / name, name)
    with pytest.raises(SourceMissing, match="no such file"):
        probe(tmp_path / "nothing.mp4")


@needs_ffmpeg
def test_clocks_that_start_again_go_on_and_a_jump_of_years_costs_nothing(media: Path, tmp_path: Path) -> None:
    """Two transport streams joined end to end: the second's clock starts below the first's end."""
    part, joined, years = tmp_path / "part.ts", tmp_path / "joined.ts", tmp_path / "years.mkv"
    clip = media / "clips" / "moviepy__chaplin.mp4"
    ffmpeg("-i", clip, "-an", "-t", "6", "-c:v", "libx264", "-bf", "0", "-vf", "scale=160:90", part)
    joined.write_bytes(part.read_bytes() * 2)
    jump = "setpts='if(lt(N,50),N/25,N/25+100000000)/TB'"
    ffmpeg("-f", "lavfi", "-i", "testsrc=size=64x64:rate=25:duration=4", "-vf", jump, "-vsync", "0",
           "-c:v", "ffv1", "-enc_time_base", "1/1000", years)  # fmt: skip
    for path, length_s in ((joined, 12), (years, 4)):
        with open_video(path) as video:
            found = [(sample.number, sample.time_s) for sample in video.samples(1)]
            assert [number for number, _ in found] == list(range(length_s))
            assert video.end_s - found[0][1] == pytest.approx(length_s, abs=0.2)


def test_times_by_timestamps(film: Path) -> None:
    import av

    with open_container(film, film.name) as container:
        stream = choose_stream(container, film.name)
        ticks = round(Fraction(1, 10) / Fraction(stream.time_base or 1))
        for pts, times_s in (
            ([0, 1, 2, 3], [0, 0.1, 0.2, 0.3]),
            ([0, None, None, 3], [0, 0.1, 0.2, 0.3]),
            ([0, 2, 1, 3], [0, 0.2, 0.3]),  # up to a second earlier: never shown
            ([0, 1, -30, -29], [0, 0.1, 0.2, 0.3]),  # more than a second earlier: the clock was reset
            ([5, 6, 20_000_000, 20_000_001], [0.5, 0.6, 0.7, 0.8]),  # more than a day later, too
            ([None, 4, 4, 5], [0, 0.4, 0.4, 0.5]),
        ):
            frames = [av.VideoFrame(16, 16, "gray") for _ in pts]
            for frame, stamp in zip(frames, pts, strict=True):
                frame.pts = None if stamp is None else stamp * ticks
            found = [float(time) for time, _ in monotonic_frames(frames, stream)]
            assert found == pytest.approx(times_s), pts


@needs_ffmpeg
def test_a_video_with_cover_art_gives_the_video(media: Path, tmp_path: Path) -> None:
    video, cover, both = media / "clips" / "moviepy__chaplin.mp4", tmp_path / "cover.png", tmp_path / "both.mp4"
    ffmpeg("-f", "lavfi", "-i", "color=red:size=2000x1000", "-frames:v", "1", cover)
    ffmpeg("-i", cover, "-i", video, "-map", "0", "-map", "1:v", "-c:v:0", "png", "-c:v:1", "copy",
           "-disposition:v:0", "attached_pic", both)  # fmt: skip
    metadata = probe(both)
    assert (metadata.codec, metadata.width_px) == ("h264", 640)


@pytest.mark.skipif(not features.check("avif"), reason="needs Pillow with AVIF")
def test_an_animated_avif_gives_its_frames_and_not_its_still(tmp_path: Path) -> None:
    greys = [Image.new("RGB", (64, 48), (25 * n,) * 3) for n in range(10)]
    greys[0].save(tmp_path / "film.avif", save_all=True, append_images=greys[1:], duration=200)
    with open_video(tmp_path / "film.avif") as video:
        means = [round(float(each.frame.to_ndarray(format="gray").mean())) for each in video.samples(5.0)]
        assert video.end_s == 2.0
    assert means == pytest.approx([25 * n for n in range(10)], abs=3)


def test_a_frame_lasts_as_long_as_it_claims_or_as_the_rate_says() -> None:
    base = Fraction(1, 1000)
    assert duration_s(40, base, Fraction(10)) == Fraction(1, 25)
    assert duration_s(0, base, Fraction(10)) == Fraction(1, 10)
    assert duration_s(10**9, base, Fraction(10)) == Fraction(1, 10)  # more than a day
    assert duration_s(0, base, None) == NOMINAL_FRAME_S
