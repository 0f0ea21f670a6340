"""Made-up videos as walks of a unit vector: scenes that drift and cut, so that one second is unlike the next minute."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kinodex.jobs.duplicates.timelines import Timeline

DIM = 48
SCENE = 7


def walk(frames: int, seed: int, per_frame: int = 8) -> NDArray[np.float32]:
    """Unit vectors `[frames * per_frame, dim]` of a film, `per_frame` a second: a new scene every `SCENE` seconds."""
    rng = np.random.default_rng(seed)
    steps = frames * per_frame
    scenes = rng.standard_normal((steps // (SCENE * per_frame) + 1, DIM))
    drift = np.cumsum(rng.standard_normal((steps, DIM)) * 0.05, axis=0)
    return _unit(scenes[np.arange(steps) // (SCENE * per_frame)] + drift)


def shot(
    film: NDArray[np.float32], start_s: float, end_s: float, *, speed: float = 1.0, noise: float = 0.0, seed: int = 0
) -> NDArray[np.float32]:
    """Frames of one a second of a part of a film of 8 frames a second, played so much faster, and re-encoded."""
    times_s = np.arange(start_s, end_s, speed)
    frames = film[np.clip(np.round(times_s * 8).astype(int), 0, len(film) - 1)]
    return _unit(frames + noise * np.random.default_rng(seed).standard_normal(frames.shape))


def timeline(units: NDArray[np.float32], start_s: float = 0.0) -> Timeline:
    return Timeline(start_s + np.arange(len(units), dtype=np.float64), units)


def _unit(vectors: NDArray[np.floating]) -> NDArray[np.float32]:
    units: NDArray[np.float32] = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    return units
