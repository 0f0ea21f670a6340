"""A repeated video: every frame again, at the same rate across the seams."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kinodex.pipeline.decoding.open import open_video
from kinodex.pipeline.images import encode_video, repeat_video

FRAMES, FPS = 20, 10


def test_frames_come_again_at_the_same_rate(tmp_path: Path) -> None:
    pictures = [np.full((64, 128, 3), 12 * number, np.uint8) for number in range(FRAMES)]
    encode_video(pictures, tmp_path / "one.mp4", width_px=128, height_px=64, fps=FPS)
    repeat_video(tmp_path / "one.mp4", tmp_path / "three.mp4", 3)
    with open_video(tmp_path / "three.mp4") as video:
        samples = [(sample.time_s, sample.frame.to_ndarray(format="gray").mean()) for sample in video.samples(1000.0)]
        assert video.decode_errors == 0
    times_s, levels = zip(*samples, strict=True)
    assert times_s == pytest.approx([number / FPS for number in range(3 * FRAMES)])
    assert levels[FRAMES:] == pytest.approx(levels[:FRAMES] * 2, abs=3)


def test_a_file_without_a_rate_is_refused(tmp_path: Path, media: Path) -> None:
    with pytest.raises(ValueError, match="repeat a file of encode_video"):
        repeat_video(media / "clips" / "moviepy__big_buck_bunny_0_30.webm", tmp_path / "longer.mp4", 2)
