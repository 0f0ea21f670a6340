"""torchcodec gives frames by number with their times, or says in one line why it cannot."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from kinodex.pipeline.decoding.others import TorchcodecFrames
from kinodex.pipeline.decoding.stream import PickError
from tests.pipeline.conftest import film_frames
from tests.support.ffmpeg import needs_decoder, psnr_db


def test_frames_and_times_by_number(film: Path) -> None:
    needs_decoder("torchcodec")
    frames = TorchcodecFrames(film, 0, "cpu")
    times, images = frames([0, 7, 63])
    expected = list(film_frames())
    assert len(frames) == 120
    np.testing.assert_allclose(times, [0.0, 0.7, 6.3], atol=1e-6)
    assert all(psnr_db(image, expected[number]) > 28 for image, number in zip(images, (0, 7, 63), strict=True))


def test_a_file_that_is_no_video(tmp_path: Path) -> None:
    needs_decoder("torchcodec")
    path = tmp_path / "words.mp4"
    path.write_text("only words")
    with pytest.raises(PickError, match="torchcodec opens nothing") as caught:
        TorchcodecFrames(path, 0, "cpu")
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(find_spec("torchcodec") is not None, reason="torchcodec is installed")
def test_without_it_the_message_says_what_to_install(film: Path) -> None:
    with pytest.raises(PickError, match=r"torchcodec does not load.*pip install torchcodec"):
        TorchcodecFrames(film, 0, "cpu")
