"""A part of a video as a file: what was asked for, what is in it, and the choice of its container."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinodex.pipeline.errors import VideoError

ClipWay = Literal["copied", "encoded"]
COPIED_TO_MP4 = frozenset({"h264", "hevc", "av1", "vp9", "mpeg4", "aac", "mp3", "opus", "flac", "ac3", "eac3", "alac"})
"""Codecs that players expect in MP4; FFmpeg would write some others there, which few of them read."""


class Expected(NamedTuple):
    """A picture, reduced to a few grey values, that a clip has to show at a time of its clock."""

    time_s: float
    picture: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class ClipFile:
    """A clip that was written.

    `start_s` and `end_s` are times of the video, as its frames in the library have them, from the clip's first picture
    to the end of its last. A copied clip begins with the key frame at or before the time that was given. `expected` are
    its first and last picture as the video shows them: `check_clip` looks for them in the file.
    """

    path: Path
    start_s: float
    end_s: float
    way: ClipWay
    has_sound: bool
    expected: tuple[Expected, ...] = field(default=(), compare=False, repr=False)


def container_suffix(codecs: Iterable[str]) -> str:
    """Return ".mp4" if players expect all these codecs there, else ".mkv", which holds everything."""
    return ".mp4" if COPIED_TO_MP4.issuperset(codecs) else ".mkv"


def nothing_there(name: str, start_s: float, until_s: float = -math.inf) -> VideoError:
    """Make the error for a range behind the last picture, which ends at `until_s`; -inf: there is none at all."""
    ended = f"its pictures end at {until_s:.2f} s" if math.isfinite(until_s) else "no picture of it can be read there"
    return VideoError(f"{name}: got a range from {start_s:.2f} s, and {ended}; choose an earlier one")


@contextmanager
def removed_on_error(out: Path) -> Iterator[None]:
    try:
        yield
    except BaseException:
        out.unlink(missing_ok=True)
        raise
