"""Exact clips: which pictures they hold, when, and the sound that belongs to them."""

from __future__ import annotations

from pathlib import Path

import av
import numpy as np
import pytest
from numpy.typing import NDArray

from kinodex.pipeline.errors import VideoError
from kinodex.pipeline.images import encode_video
from kinodex.pipeline.media.clips import encode_ranges

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


def test_a_clip_begins_with_what_is_shown_at_its_first_instant(film: Path, tmp_path: Path) -> None:
    (clip,) = encode_ranges(film, "film", tmp_path / "clip.mp4", [(2.55, 3.25)])
    assert (clip.start_s, clip.way, clip.has_sound) == (2.55, "encoded", False)
    assert clip.end_s == pytest.approx(3.25)
    numbers = [number % LEVELS for number in range(25, 33)]
    times = [0.0, *(round(2.6 + step / FPS - 2.55, 3) for step in range(7))]
    assert shown(clip.path) == list(zip(times, numbers, strict=True))


def test_a_range_over_the_end_holds_what_there_is(film: Path, tmp_path: Path) -> None:
    (clip,) = encode_ranges(film, "film", tmp_path / "clip.mp4", [(5.8, 60.0)])
    assert clip.end_s == pytest.approx(6.0)
    assert [number for _, number in shown(clip.path)] == [58 % LEVELS, 59 % LEVELS]


def test_a_range_without_pictures_leaves_no_file(film: Path, tmp_path: Path) -> None:
    with pytest.raises(VideoError, match=r"film: got a range from 8\.00 s, and no picture"):
        encode_ranges(film, "film", tmp_path / "clip.mp4", [(8.0, 9.0)])
    assert not list(tmp_path.iterdir())


def test_ranges_follow_one_another_in_one_file(film: Path, tmp_path: Path) -> None:
    clips = encode_ranges(film, "film", tmp_path / "clip.mp4", [(4.0, 4.3), (1.0, 1.2)])
    assert [(clip.start_s, round(clip.end_s, 3)) for clip in clips] == [(4.0, 4.3), (1.0, 1.2)]
    numbers = [number % LEVELS for number in (40, 41, 42, 10, 11)]
    assert shown(clips[0].path) == list(zip((0.0, 0.1, 0.2, 0.3, 0.4), numbers, strict=True))


def test_of_ranges_one_without_pictures_leaves_no_file(film: Path, tmp_path: Path) -> None:
    with pytest.raises(VideoError, match=r"film: got a range from 8\.00 s, and no picture"):
        encode_ranges(film, "film", tmp_path / "clip.mp4", [(1.0, 1.2), (8.0, 9.0)])
    assert not list(tmp_path.iterdir())


@pytest.mark.needs_media
def test_the_sound_of_ranges_stays_with_their_pictures(media: Path, tmp_path: Path) -> None:
    film = media / "clips" / "moviepy__sintel_trailer_52s.mp4"
    encode_ranges(film, "sintel", tmp_path / "clip.mp4", [(40.0, 41.0), (21.3, 24.8)])
    ours, theirs = samples(tmp_path / "clip.mp4", 1.5, 2.5), samples(film, 21.8, 2.5)
    assert np.corrcoef(ours, theirs)[0, 1] > 0.98


def test_sides_become_even(tmp_path: Path) -> None:
    with av.open(str(tmp_path / "odd.mkv"), "w") as container:
        stream = container.add_stream("ffv1", rate=FPS)
        stream.width, stream.height, stream.pix_fmt = 97, 63, "yuv444p"
        frame = av.VideoFrame.from_ndarray(np.full((63, 97, 3), 90, np.uint8), format="rgb24")
        container.mux([*stream.encode(frame.reformat(format="yuv444p")), *stream.encode()])
    encode_ranges(tmp_path / "odd.mkv", "odd", tmp_path / "clip.mp4", [(0.0, 0.1)])
    with av.open(str(tmp_path / "clip.mp4")) as container:
        assert (container.streams.video[0].width, container.streams.video[0].height) == (96, 62)


def samples(path: Path, start_s: float, length_s: float) -> NDArray[np.float32]:
    """Sound of a file from a time on, as one channel at 16 kHz."""
    resampler = av.AudioResampler("flt", "mono", 16_000)
    with av.open(str(path)) as container:
        frames = [each for frame in container.decode(audio=0) for each in resampler.resample(frame)]
    begin_s = frames[0].time or 0.0
    sound = np.concatenate([frame.to_ndarray()[0] for frame in frames])
    first = round((start_s - begin_s) * 16_000)
    return sound[first : first + round(length_s * 16_000)]


@pytest.mark.needs_media
def test_sound_is_that_of_the_range(media: Path, tmp_path: Path) -> None:
    film = media / "clips" / "moviepy__sintel_trailer_52s.mp4"
    (clip,) = encode_ranges(film, "sintel", tmp_path / "clip.mp4", [(21.3, 24.8)])
    assert clip.has_sound
    ours, theirs = samples(clip.path, 0.5, 2.5), samples(film, 21.8, 2.5)
    assert np.corrcoef(ours, theirs)[0, 1] > 0.98
    later = samples(film, 21.85, 2.5)
    assert np.corrcoef(ours, later)[0, 1] < 0.9, "the comparison must see an offset of 50 ms"


@pytest.mark.needs_media
def test_a_rotated_film_comes_out_upright(media: Path, tmp_path: Path) -> None:
    film = media / "awkward" / "decord__video_90.mov"
    (clip,) = encode_ranges(film, "turned", tmp_path / "clip.mp4", [(0.0, 0.1)])
    with av.open(str(film)) as source, av.open(str(clip.path)) as container:
        stored, ours = next(source.decode(video=0)), next(container.decode(video=0))
    assert (ours.width, ours.height) == (stored.height, stored.width)
    assert ours.rotation == 0


@pytest.mark.needs_media
def test_a_file_that_cannot_be_searched_is_decoded_from_its_beginning(media: Path, tmp_path: Path) -> None:
    film = media / "awkward" / "mediabunny__hevc-aac.avi"
    (clip,) = encode_ranges(film, "avi", tmp_path / "clip.mp4", [(0.4, 0.8)])
    assert clip.end_s == pytest.approx(0.8)
    assert len(shown(clip.path)) == pytest.approx(0.4 * 25, abs=3)
