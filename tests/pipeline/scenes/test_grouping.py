"""Groups of neighbours: borders where the mean changes, in as many groups as are allowed."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from kinodex.pipeline.scenes import Feature, Limits, divide

DIM = 32
FREE = Limits(border_price=3.0, fewest=1, most=1000, longest_items=1000, shortest=0.0)


def feature(vectors, weights=None, least_noise=1e-6):
    vectors = np.asarray(vectors, float)
    return Feature(vectors, np.ones(len(vectors)) if weights is None else np.asarray(weights, float), least_noise)


def divided(features, count, limits=FREE, prices=None):
    return divide(features, np.ones(count), np.ones(count) if prices is None else np.asarray(prices), limits)


def places(*sizes, seed=0, noise=0.3):
    """Items of places that differ, with noise."""
    chance = np.random.default_rng(seed)
    means = chance.normal(size=(len(sizes), DIM))
    return np.vstack([mean + noise * chance.normal(size=(size, DIM)) for mean, size in zip(means, sizes, strict=True)])


def test_borders_lie_where_the_mean_changes():
    assert divided([feature(places(7, 3, 12, 5))], 27) == [0, 7, 10, 22]


def test_a_dialogue_that_cuts_to_and_fro_is_one_group():
    faces = np.eye(DIM)[[0, 1] * 8 + [2, 3] * 8]
    assert divided([feature(faces + 0.05 * places(32, noise=1.0))], 32) == [0, 16]


@pytest.mark.parametrize("seed", range(6))
def test_no_other_grouping_costs_less(seed):
    vectors = places(3, 4, 3, seed=seed, noise=1.0)
    found = divided([feature(vectors)], 10)
    near = [vectors[lag:] - vectors[:-lag] for lag in (1, 2)]
    noise = np.median((np.vstack(near) ** 2).sum(axis=1)) / 2

    def cost(starts):
        groups = np.split(vectors, starts[1:])
        within = sum(((group - group.mean(axis=0)) ** 2).sum() for group in groups)
        return within / noise + 3.0 * (len(starts) - 1)

    every = [[0, *inner] for size in range(10) for inner in combinations(range(1, 10), size)]
    assert cost(found) == pytest.approx(min(map(cost, every)))


def test_the_number_of_groups_stays_within_its_limits():
    vectors = feature(places(*[5] * 8, noise=0.2))
    assert len(divided([vectors], 40)) == 8
    assert len(divided([vectors], 40, Limits(3.0, 1, 3, 40, 0.0))) == 3
    assert 12 <= len(divided([vectors], 40, Limits(3.0, 12, 20, 40, 0.0))) <= 20
    assert max(np.diff([*divided([vectors], 40, Limits(3.0, 1, 40, 4, 0.0)), 40])) <= 4


def test_items_that_are_all_alike_are_one_group():
    assert divided([feature(np.ones((30, 4)))], 30) == [0]
    assert divided([], 5) == [0]
    assert divide([], np.ones(0), np.ones(0), FREE) == []


def test_a_kind_of_evidence_counts_where_it_is():
    """Words of the first half alone: there they find a border, elsewhere they say nothing."""
    pictures = places(10, 10)
    words = np.vstack([places(5, 5, seed=3), np.zeros((10, DIM))])
    weights = [1.0] * 10 + [0.0] * 10
    assert divided([feature(pictures)], 20) == [0, 10]
    assert divided([feature(pictures), feature(words, weights)], 20) == [0, 5, 10]


def test_the_price_of_a_border_moves_it():
    vectors = places(8, 8, seed=2, noise=0.6)
    prices = np.ones(16)
    prices[8] = 1000.0
    assert divided([feature(vectors)], 16) == [0, 8]
    assert 8 not in divided([feature(vectors)], 16, prices=prices)


def test_a_short_group_has_to_stand_out():
    vectors = 0.2 * places(21, noise=1.0)
    vectors[10] += 0.5
    assert divided([feature(vectors)], 21) == [0, 10, 11]
    assert divided([feature(vectors)], 21, Limits(3.0, 1, 1000, 1000, 3.0)) == [0]
