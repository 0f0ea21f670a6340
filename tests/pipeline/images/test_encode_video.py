"""Encoded frames come back in order, close to what they were, and the same frames give the same bytes."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

from kinodex.pipeline.decoding.open import open_video, probe
from kinodex.pipeline.images import encode_video, rgb_scaler
from tests.pipeline.conftest import FILM_FPS, FILM_S, film_frames
from tests.support.ffmpeg import psnr_db


def test_frames_come_back_as_they_were(film: Path) -> None:
    with open_video(film) as video:
        to_rgb = rgb_scaler(Fraction(1), 128, 64)
        decoded = [(sample.time_s, to_rgb(sample.frame)) for sample in video.samples(1000)]
        assert video.end_s == FILM_S
    assert [time_s for time_s, _ in decoded] == [number / FILM_FPS for number in range(FILM_S * FILM_FPS)]
    assert min(psnr_db(rgb, frame) for (_, rgb), frame in zip(decoded, film_frames(), strict=True)) > 30


def test_the_same_frames_give_the_same_bytes(film: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.mp4"
    encode_video(film_frames(), again, width_px=128, height_px=64, fps=FILM_FPS, key_frame_s=2)
    assert again.read_bytes() == film.read_bytes()
    metadata = probe(again)
    assert (metadata.codec, metadata.width_px, metadata.height_px, metadata.fps) == ("h264", 128, 64, FILM_FPS)
