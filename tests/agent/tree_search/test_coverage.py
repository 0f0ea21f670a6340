"""Coverage is exact: compared with every choice there is, on small cases."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from agent.tree_search.coverage import cover, spread


def largest_gap(points: np.ndarray, chosen: np.ndarray) -> float:
    """From a point to its nearest chosen time."""
    return float(np.abs(points[:, None] - chosen[None]).min(axis=1, initial=np.inf).max())


def best_possible(points: np.ndarray, available: np.ndarray, fixed: np.ndarray, count: int) -> float:
    choices = combinations(available.tolist(), min(count, len(available)))
    return min(largest_gap(points, np.asarray(sorted([*fixed, *choice]))) for choice in choices)


@pytest.mark.parametrize("seed", range(200))
def test_no_choice_covers_better(seed):
    random = np.random.default_rng(seed)
    points = np.unique(random.integers(0, 60, size=random.integers(3, 14))).astype(float)
    fixed = np.sort(random.choice(points, size=random.integers(0, min(4, len(points))), replace=False))
    available = np.setdiff1d(points, fixed)
    count = int(random.integers(1, 4))
    if len(available) == 0:
        return
    chosen = cover(points, available, fixed, count)
    assert len(chosen) == min(count, len(available))
    assert set(chosen) <= set(available)
    reached = largest_gap(points, np.union1d(fixed, chosen))
    assert reached == pytest.approx(best_possible(points, available, fixed, count), abs=1e-9)


def test_the_case_where_farthest_point_selection_is_not_optimal():
    points = np.arange(0.0, 101.0)
    chosen = cover(points, np.setdiff1d(points, [55.0]), np.asarray([55.0]), 2)
    assert largest_gap(points, np.union1d(chosen, [55.0])) <= 19.0


def test_fewer_stored_frames_than_wanted_are_all_taken():
    stored = np.asarray([3.0, 9.0])
    assert cover(stored, stored, stored[:0], 6).tolist() == [3.0, 9.0]
    assert spread(0.0, 10.0, stored, 6).tolist() == [3.0, 9.0]


def test_nothing_to_choose():
    stored = np.asarray([3.0, 9.0])
    assert len(cover(stored, stored, stored[:0], 0)) == 0
    assert len(cover(stored[:0], stored[:0], stored[:0], 3)) == 0


def test_spread_takes_equal_steps_and_no_frame_twice():
    assert spread(0.0, 40.0, np.arange(0.0, 40.0), 3).tolist() == [10.0, 20.0, 30.0]
    crowded = np.asarray([0.0, 1.0, 2.0, 39.0])
    assert len(set(spread(0.0, 40.0, crowded, 3).tolist())) == 3
