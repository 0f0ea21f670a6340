"""Settings out of range are refused; a frame and its vector make a row."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pipeline.sampling.types import FrameRow, IngestSettings, SampledFrame, frame_row


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
