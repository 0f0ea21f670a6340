"""Which decoder reads a video, and why not another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pipeline.decoding.metadata import VideoMetadata

DECODERS = ("pyav", "decord", "torchcodec", "nvdec")


class PickError(Exception):
    """A decoder other than PyAV cannot read a video, or reads it otherwise. Never leaves the room."""


class FrameSource(Protocol):
    """A video as a list of frames in the order of presentation."""

    def __len__(self) -> int: ...

    def __call__(self, indices: Sequence[int]) -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
        """Their times `[n]` in seconds after the first frame, and upright RGB pictures `[n, height, width, 3]`.

        Indices rise.

        Raises:
            PickError: it cannot.
        """


def check(decoder: str) -> None:
    """Raises ValueError if there is no such decoder."""
    if decoder not in (*DECODERS, "auto"):
        raise ValueError(f"decoder {decoder!r} is unknown; choose one of auto, {', '.join(DECODERS)}")


def choose(decoder: str) -> str:
    """The decoder itself, or for "auto" the cheapest one.

    That is PyAV with its packet plan wherever it was measured, so neither codec nor rate decide. CPU seconds relative
    to decoding everything, at 0.2 / 1 / 2 samples a second; 45 s of 720p at 25 fps, key frames 250 frames apart or
    at cuts, 2 shared cores, PyAV 18.1, decord 0.6.0, torchcodec 0.13.0:

        codec             PyAV                decord              torchcodec
        h264              0.34 / 0.53 / 0.63  0.57 / 1.09 / 1.33  0.60 / 0.98 / 1.08
        h264, 360p        0.47 / 0.68 / 0.72  0.73 / 1.21 / 1.35  0.66 / 1.13 / 1.15
        h264, 50 apart    0.21 / 0.53 / 0.58  0.36 / 1.00 / 1.45  0.34 / 0.84 / 1.07
        hevc              0.32 / 0.51 / 0.60  wrong frames        0.49 / 0.95 / 1.18
        vp9               0.36 / 0.77 / 0.88  0.40 / 0.99 / 1.17  0.38 / 0.90 / 1.10
        av1               0.46 / 1.11 / 1.03  opens nothing       0.62 / 1.19 / 1.25

    NVDEC has not been measured: it is used where it is asked for by name.
    """
    return "pyav" if decoder == "auto" else decoder


def unfit(decoder: str, facts: VideoMetadata) -> str | None:
    """Why a decoder other than PyAV must not be given such a stream, or would show it otherwise than a player."""
    if decoder == "decord" and facts.container == "mpegts":
        return "it may hang or take gigabytes on a transport stream"
    if facts.interlaced:
        return "interlaced: its fields would be woven into one picture"
    if facts.rotation_deg and facts.sample_aspect_ratio != 1:
        return "rotated, with pixels that are not square"
    if "yuva" in facts.pix_fmt or facts.pix_fmt.strip("0123456789bel") in ("rgba", "argb", "bgra", "abgr", "gbrap"):
        return "transparent: what lies behind the picture would show"
    return None


def source(decoder: str) -> Callable[[Path, int], FrameSource]:
    """The opener of a decoder other than PyAV: of a path and the index of a stream."""
    if decoder == "decord":
        from pipeline.decoding.decord_backend import DecordFrames

        return DecordFrames
    from pipeline.decoding.torchcodec_backend import TorchcodecFrames

    return partial(TorchcodecFrames, device="cuda" if decoder == "nvdec" else "cpu")
