"""The most telling frame of a video.

The vectors of a video's frames are grouped by spherical k-means (Dhillon and Modha 2001, "Concept decompositions for
large sparse text data", section 3), and the frame nearest to the mean of each group stands for it, that of the
largest group first. The first of them that is neither dark, nor blank, nor a card of text on plain ground is the
most telling; where all are, it is the one with the most shades. In a library without a space frames at even distances
stand for a video.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray

from kinodex.index.rows import FrameVectors, StoredFrame
from kinodex.jobs.library import grey_values
from kinodex.pipeline.errors import PictureError

GROUPS, STEPS = 6, 5
MOST_FRAMES = 512
"""Frames of a longer video are thinned to these, evenly, before they are grouped."""
CANDIDATES = 8
MIN_BRIGHTNESS, MAX_BRIGHTNESS = 28.0, 236.0
MIN_CONTRAST = 14.0
"""Standard deviation of the grey values, 0 to 255."""
MOST_OF_ONE_SHADE = 0.72
"""Part of a picture in one of 16 shades; cards of text have more."""
SHADES = 16


def first_telling(frames: Sequence[StoredFrame]) -> StoredFrame | None:
    """Choose the first telling one of some frames, else the one with the most shades; None if none can be read."""
    shades = {frame.frame_no: values for frame in frames if (values := _grey(frame)) is not None}
    readable = [frame for frame in frames if frame.frame_no in shades]
    telling = (frame for frame in readable if is_telling(shades[frame.frame_no]))
    return next(telling, None) or max(readable, key=lambda frame: variety(shades[frame.frame_no]), default=None)


def evenly(frame_nos: NDArray[np.int32]) -> list[int]:
    """List the numbers of up to `CANDIDATES` frames at even distances, those nearest to the middle first."""
    at = np.linspace(0, len(frame_nos) - 1, min(len(frame_nos), CANDIDATES) + 2)[1:-1].round().astype(int)
    inwards = sorted(dict.fromkeys(at.tolist()), key=lambda each: abs(each - (len(frame_nos) - 1) / 2))
    return [int(frame_nos[each]) for each in inwards]


def candidates(stored: FrameVectors) -> list[int]:
    """List the numbers of up to `CANDIDATES` frames that stand for a video, the best first."""
    every = np.linspace(0, len(stored.frame_no) - 1, min(len(stored.frame_no), MOST_FRAMES)).round().astype(int)
    if len(every) > 1:
        every = every[1:]  # films open with black and with logos
    ranked = [every[group] for group in groups(stored.vectors[every].astype(np.float32))]
    in_turn = [int(at) for turn in zip_longest(*ranked) for at in turn if at is not None]
    return [int(stored.frame_no[at]) for at in in_turn[:CANDIDATES]]


def groups(vectors: NDArray[np.float32]) -> list[NDArray[np.int64]]:
    """Group unit vectors `[n, dim]`: the rows of each group from its mean outwards, the largest group first."""
    count = min(GROUPS, -(-len(vectors) // 3))
    middles = vectors[((np.arange(count) + 0.5) * len(vectors) / count).astype(int)]
    for _ in range(STEPS):
        nearest = (vectors @ middles.T).argmax(axis=1)
        sums = np.stack([vectors[nearest == group].sum(axis=0) for group in range(count)])
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        middles = np.where(lengths > 0, sums / np.maximum(lengths, 1e-12), middles)
    similarities = vectors @ middles.T
    nearest = similarities.argmax(axis=1)
    found = [np.flatnonzero(nearest == group) for group in range(count)]
    order = sorted(range(count), key=lambda group: (-len(found[group]), group))
    return [found[g][np.argsort(-similarities[found[g], g], kind="stable")] for g in order if len(found[g])]


def is_telling(grey: NDArray[np.uint8]) -> bool:
    """Return True for grey values `[height, width]` that are neither dark, nor blank, nor almost all of one shade."""
    shades = np.bincount(grey.ravel() // (256 // SHADES), minlength=SHADES) / grey.size
    return bool(
        MIN_BRIGHTNESS <= grey.mean() <= MAX_BRIGHTNESS
        and grey.std() >= MIN_CONTRAST
        and shades.max() <= MOST_OF_ONE_SHADE
    )


def variety(grey: NDArray[np.uint8]) -> float:
    part = np.bincount(grey.ravel(), minlength=256) / grey.size
    part = part[part > 0]
    return float(-(part * np.log2(part)).sum())


def _grey(frame: StoredFrame) -> NDArray[np.uint8] | None:
    """Read a frame's grey values small; None if it cannot be read, so that another frame is chosen."""
    try:
        return grey_values(frame)
    except PictureError:
        return None
