"""Frames of a video as a row of vectors along time, without what all frames of the library have in common."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from kinodex.index.library import LibraryReader

MEAN_VIDEOS = 500
"""The mean of a library is that of this many of its videos, chosen by their ids, which are hashes of the files."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """Frames of one video in time order: `times_s` `[n]` and `units` `[n, dim]`, float32.

    `units` are of unit length after the library's mean was taken away; a frame that equals the mean is zero.
    """

    times_s: NDArray[np.float64]
    units: NDArray[np.float32]

    @property
    def gap_s(self) -> float:
        """Usual time between two frames, 1 of a single frame."""
        return float(np.median(np.diff(self.times_s))) if len(self.times_s) > 1 else 1.0

    def at(self, times_s: NDArray[np.float64]) -> NDArray[np.float32]:
        """Vectors `[m, dim]` at these times, between two frames the mean of both, weighted by nearness."""
        if len(self.times_s) == 1:
            return np.repeat(self.units, len(times_s), axis=0)
        before = np.clip(np.searchsorted(self.times_s, times_s, side="right") - 1, 0, len(self.times_s) - 2)
        passed = (times_s - self.times_s[before]) / (self.times_s[before + 1] - self.times_s[before])
        share = np.clip(passed, 0.0, 1.0).astype(np.float32)[:, None]
        mixed: NDArray[np.float32] = self.units[before] * (1 - share) + self.units[before + 1] * share
        return mixed


def read_timeline(library: LibraryReader, video_id: str, space: str | None, mean: NDArray[np.float32]) -> Timeline:
    """Read the timeline of a video of a library, whose mean `[dim]` is taken away."""
    stored = library.vectors(video_id, space)
    return Timeline(stored.time_s, _unit(_unit(stored.vectors.astype(np.float32)) - mean))


def read_mean(library: LibraryReader, video_ids: Iterable[str], space: str | None) -> NDArray[np.float32]:
    """Mean of the unit vectors of some videos, each video counting once."""
    means: list[NDArray[np.float32]] = [
        _unit(library.vectors(video_id, space).vectors.astype(np.float32)).mean(axis=0)
        for video_id in islice(sorted(video_ids), MEAN_VIDEOS)
    ]
    mean: NDArray[np.float32] = np.mean(means, axis=0, dtype=np.float32)
    return mean


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: NDArray[np.float32] = vectors / np.maximum(lengths, np.float32(1e-6))
    unit[lengths[:, 0] < 1e-6] = 0.0
    return unit
