"""Files that are no video say so in one line; a video gives its right stream, metadata as displayed, and its times."""

from __future__ import annotations

import os
import struct
from fractions import Fraction
from pathlib import Path

import pytest
from PIL import Image, features

from kinodex.pipeline.decoding.open import open_video, probe
from kinodex.pipeline.decoding.stream import (
    NOMINAL_FRAME_S,
    choose_stream,
    duration_s,
    monotonic_frames,
    open_container,
)
from kinodex.pipeline.errors import (
    EmptyFile,
    NotAVideo,
    NoVideoStream,
    PipelineError,
    PlaylistRefused,
    SourceForbidden,
    SourceMissing,
)
from tests.support.ffmpeg import ffmpeg, needs_ffmpeg

BROKEN = {
    "mediabunny__multiple-aac-tracks.mp4": NoVideoStream,
    "mediabunny__segment.mp4": NotAVideo,
    "mediabunny__vorbis-eos.ogg": NoVideoStream,
    "moviepy__doc_medias_result.webm": EmptyFile,
    "moviepy__with-attached-pic.mp3": NoVideoStream,
    "pixeltable__bad_video.mp4": NotAVideo,
}


def test_no_broken_file_is_forgotten(media: Path) -> None:
    broken = set()
    for path in (media / "awkward").iterdir():
        try:
            probe(path)
        except PipelineError:
            broken.add(path.name)
    assert broken == set(BROKEN)


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files_say_what_they_are_in_one_line(media: Path, name: str) -> None:
    with pytest.raises(BROKEN[name]) as caught:
        probe(media / "awkward" / name)
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.stage == "open"


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


@pytest.mark.skipif(not features.check("avif"), reason="needs Pillow with AVIF")
def test_an_animated_avif_gives_its_frames_and_not_its_still(tmp_path: Path) -> None:
    greys = [Image.new("RGB", (64, 48), (25 * n,) * 3) for n in range(10)]
    greys[0].save(tmp_path / "film.avif", save_all=True, append_images=greys[1:], duration=200)
    with open_video(tmp_path / "film.avif") as video:
        means = [round(float(each.frame.to_ndarray(format="gray").mean())) for each in video.samples(5.0)]
        assert video.end_s == 2.0
    assert means == pytest.approx([25 * n for n in range(10)], abs=3)


def test_a_container_without_streams_is_not_said_to_hold_none_but_no_video(tmp_path: Path) -> None:
    movie_header = struct.pack(">I4s12xII80x", 108, b"mvhd", 1000, 1000)
    moov = struct.pack(">I4s", 8 + len(movie_header), b"moov") + movie_header
    path = tmp_path / "empty.mp4"
    path.write_bytes(struct.pack(">I4s4sI4s", 20, b"ftyp", b"isom", 0, b"isom") + moov)
    with pytest.raises(NoVideoStream, match=r"^empty\.mp4: holds no stream at all; give a file with moving pictures$"):
        probe(path, "empty.mp4")


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
        ("playlist.mp4", b"#EXTM3U\n#EXTINF:9,\n/etc/hostname\n#EXT-X-ENDLIST\n", PlaylistRefused),
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


def times_at(path: Path, fps: float = 1) -> tuple[list[tuple[int, float]], float, int]:
    """(number, time) of each sample, the end, and the errors."""
    with open_video(path) as video:
        found = [(sample.number, sample.time_s) for sample in video.samples(fps)]
        return found, video.end_s, video.decode_errors


def test_times_of_an_avi_without_presentation_times_are_those_of_ffprobe(media: Path) -> None:
    found, _, _ = times_at(media / "awkward" / "mediabunny__hevc-aac.avi", fps=1000)
    assert [time_s for _, time_s in found] == [(2 + i) / 25 for i in range(25)]


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


@pytest.mark.parametrize(
    ("pts", "times_s"),
    [
        ([0, 1, 2, 3], [0, 0.1, 0.2, 0.3]),
        ([0, None, None, 3], [0, 0.1, 0.2, 0.3]),
        ([0, 2, 1, 3], [0, 0.2, 0.3]),  # up to a second earlier: never shown
        ([0, 1, -30, -29], [0, 0.1, 0.2, 0.3]),  # more than a second earlier: the clock was reset
        ([5, 6, 20_000_000, 20_000_001], [0.5, 0.6, 0.7, 0.8]),  # more than a day later, too
        ([None, 4, 4, 5], [0, 0.4, 0.4, 0.5]),
    ],
)
def test_times_by_timestamps(film: Path, pts: list[int | None], times_s: list[float]) -> None:
    import av

    with open_container(film, film.name) as container:
        stream = choose_stream(container, film.name)
        base = Fraction(stream.time_base or 1)
        ticks = round(Fraction(1, 10) / base)
        frames = []
        for stamp in pts:
            frame = av.VideoFrame(16, 16, "gray")
            frame.pts = None if stamp is None else stamp * ticks
            frames.append(frame)
        found = [float(time) for time, _ in monotonic_frames(frames, stream)]
    assert found == pytest.approx(times_s)


def test_a_frame_lasts_as_long_as_it_claims_or_as_the_rate_says() -> None:
    base = Fraction(1, 1000)
    assert duration_s(40, base, Fraction(10)) == Fraction(1, 25)
    assert duration_s(0, base, Fraction(10)) == Fraction(1, 10)
    assert duration_s(10**9, base, Fraction(10)) == Fraction(1, 10)  # more than a day
    assert duration_s(0, base, None) == NOMINAL_FRAME_S
