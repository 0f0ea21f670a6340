"""Small pictures, by which shots are found without a model: a cut is far, a little noise or movement is near."""

from __future__ import annotations

import numpy as np

from kinodex.index.spaces.small_pictures import SmallPictures

RANDOM = np.random.default_rng(7)


def distance(one: np.ndarray, other: np.ndarray) -> float:
    small = SmallPictures()
    units = small.embed(np.stack([small.prepare(each) for each in (one, other)])).astype(np.float64)
    assert np.allclose(np.linalg.norm(units, axis=1), 1.0, atol=1e-3)
    return float(1 - units[0] @ units[1])


def picture(left: int, right: int) -> np.ndarray:
    made = np.full((90, 160, 3), right, np.uint8)
    made[:, :80] = left
    return made


def test_a_cut_is_far_and_grain_is_near() -> None:
    shot = picture(40, 200)
    grain = np.clip(shot + RANDOM.normal(0, 12, shot.shape), 0, 255).astype(np.uint8)
    assert distance(shot, grain) < 0.01
    assert distance(shot, np.roll(shot, 4, axis=1)) < 0.08
    assert distance(shot, picture(200, 40)) > 0.3


def test_the_noise_of_black_pictures_is_no_cut() -> None:
    dark = [np.clip(RANDOM.normal(6, 4, (90, 160, 3)), 0, 255).astype(np.uint8) for _ in range(2)]
    assert distance(*dark) < 0.01
    assert distance(dark[0], picture(120, 240)) > 0.3
