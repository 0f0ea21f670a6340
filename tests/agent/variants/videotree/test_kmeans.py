"""K-means by cosine: groups that are apart, the same for the same seed."""

from __future__ import annotations

import numpy as np
import pytest

from kinodex.agent.variants.videotree import k_means


def unit(vectors):
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def test_k_means_finds_groups_that_are_apart():
    random = np.random.default_rng(0)
    directions = unit(random.normal(size=(5, 64)))
    belongs = random.integers(5, size=300)
    vectors = unit(directions[belongs] + 0.02 * random.normal(size=(300, 64)))
    found = k_means(vectors, 5)
    assert sorted(tuple(each.members) for each in found) == sorted(
        tuple(np.flatnonzero(belongs == which)) for which in range(5)
    )
    for cluster in found:
        assert cluster.middle in cluster.members
        centre = vectors[cluster.members].mean(axis=0)
        assert vectors[cluster.middle] @ centre == pytest.approx((vectors[cluster.members] @ centre).max(), abs=1e-6)


def test_k_means_is_the_same_for_the_same_seed_and_covers_everything():
    vectors = unit(np.random.default_rng(1).normal(size=(200, 16)))
    first, again, other = k_means(vectors, 8, 3), k_means(vectors, 8, 3), k_means(vectors, 8, 4)
    assert [tuple(each.members) for each in first] == [tuple(each.members) for each in again]
    assert [tuple(each.members) for each in first] != [tuple(each.members) for each in other]
    assert sorted(np.concatenate([each.members for each in first])) == list(range(200))


def test_k_means_makes_no_more_clusters_than_there_are_different_vectors():
    alike = unit(np.repeat(np.random.default_rng(2).normal(size=(2, 16)), 10, axis=0))
    assert sorted(len(each.members) for each in k_means(alike, 8)) == [10, 10]
    assert len(k_means(alike[:1], 8)) == 1
