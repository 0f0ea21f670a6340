"""Check of a clip that was written: it is opened again, and has to show the pictures that were asked for."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from kinodex.pipeline.decoding.clock import UNBROKEN
from kinodex.pipeline.decoding.stream import open_container
from kinodex.pipeline.errors import WrongClip
from kinodex.pipeline.images import rgb_scaler
from kinodex.pipeline.media.clip_file import Expected
from kinodex.pipeline.media.pictures import frames_from

SIDE_PX = 32
SCALED_PX = 4 * SIDE_PX
MOST_DIFFERENCE = 8.0
"""Mean difference of grey values, of 0 to 255, that codecs may make of one small picture; another shot makes more."""
INSIDE_S = 0.0006
"""A picture is looked for so far within its time: Matroska rounds times to a millisecond."""


def small_picture(rgb: NDArray[np.uint8]) -> NDArray[np.float32]:
    grey = Image.fromarray(rgb).convert("L").resize((SIDE_PX, SIDE_PX), Image.Resampling.BOX)
    return np.asarray(grey, np.float32)


def inside_s(start_s: float, until_s: float) -> float:
    return min(INSIDE_S, (until_s - start_s) / 2)


def shown_at(path: Path, name: str, time_s: float) -> tuple[float, float, NDArray[np.float32]] | None:
    """Decode what a file shows at a time: from and until when, and the picture, small; None behind the last one."""
    with ExitStack() as opened:
        stream, frames, _ = frames_from(opened, lambda: open_container(path, name), name, time_s, UNBROKEN)
        for begin, until, frame in frames:
            rgb = rgb_scaler(stream.sample_aspect_ratio or Fraction(1), SCALED_PX, SCALED_PX)(frame)
            return float(begin), float(until), small_picture(rgb)
    return None


def check_clip(path: Path, name: str, expected: Iterable[Expected]) -> None:
    """Raise WrongClip if a clip of the video `name` does not show a picture at its time."""
    for time_s, picture in expected:
        shown = shown_at(path, name, time_s)
        if shown is None or shown[0] > time_s:
            raise WrongClip(f"{name}: its clip shows nothing at {time_s:.3f} s, although the video does")
        if np.abs(shown[2] - picture).mean() > MOST_DIFFERENCE:
            raise WrongClip(f"{name}: its clip shows another picture at {time_s:.3f} s than the video")
