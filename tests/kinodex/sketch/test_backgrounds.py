"""The eight places look unlike each other, darker by night, and vary in their details."""

from __future__ import annotations

from itertools import combinations
from random import Random

import numpy as np
import pytest

from kinodex.sketch.drawings import draw_place
from kinodex.sketch.scenes import PLACE_NAMES


def drawn(place: str, night: bool = False, seed: int = 0) -> np.ndarray:
    return np.asarray(draw_place(place, night, 96, 54, Random(seed))).astype(float)


def test_places_look_unlike_each_other() -> None:
    places = [drawn(place) for place in PLACE_NAMES]
    assert {picture.shape for picture in places} == {(54, 96, 3)}
    assert min(np.abs(one - other).mean() for one, other in combinations(places, 2)) > 8


@pytest.mark.parametrize("place", PLACE_NAMES)
def test_a_place_is_darker_by_night_and_varies_with_the_seed(place: str) -> None:
    assert drawn(place, night=True).mean() < 0.75 * drawn(place).mean()
    assert np.array_equal(drawn(place, seed=1), drawn(place, seed=1))
    assert not np.array_equal(drawn(place, seed=1), drawn(place, seed=2))
