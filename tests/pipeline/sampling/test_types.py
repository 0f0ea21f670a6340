"""Settings out of range are refused; a frame and its vector make a row."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pipeline.sampling.types import IngestSettings


@pytest.mark.parametrize(
    "wrong",
    [{"fps": 0}, {"fps": -1}, {"fps": float("nan")}, {"jpeg_quality": 0}, {"jpeg_quality": 101},
     {"jpeg_side_px": 0}, {"window_s": 0}],
)  # fmt: skip
def test_settings_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="out of range"):
        replace(IngestSettings(), **wrong)
