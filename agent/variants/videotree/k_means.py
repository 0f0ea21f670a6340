"""Clusters of frames that look alike: k-means by cosine.

Not scikit-learn's: it would add 200 MB to an install (scipy among them), is slower on frames, raises where fewer
frames differ than clusters are wanted, and clusters differently, so that older traces could not be replayed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

ROUNDS = 100


@dataclass(frozen=True, slots=True)
class Cluster:
    """Positions of its frames among those that were clustered, ascending, and of the one nearest to its middle."""

    members: NDArray[np.intp]
    middle: int


def k_means(units: NDArray[np.float32], count: int, seed: int = 0) -> list[Cluster]:
    """At most `count` clusters of unit vectors [n, dim], by their first members; the same for the same seed.

    There are fewer where fewer vectors differ.
    """
    centres = _scattered(units, count, np.random.default_rng(seed))
    nearest = np.argmax(units @ centres.T, axis=1)
    for _ in range(ROUNDS):
        centres = np.stack([_middle(units[nearest == which]) for which in np.unique(nearest)])
        moved = np.argmax(units @ centres.T, axis=1)
        if np.array_equal(moved, nearest):
            break
        nearest = moved
    clusters = [np.flatnonzero(nearest == which) for which in range(len(centres))]
    found = [
        Cluster(members, int(members[np.argmax(units[members] @ centre)]))
        for members, centre in zip(clusters, centres, strict=True)
        if len(members)
    ]
    return sorted(found, key=lambda cluster: int(cluster.members[0]))


def _scattered(units: NDArray[np.float32], count: int, chance: np.random.Generator) -> NDArray[np.float32]:
    """First centres (k-means++): each is a vector, the more likely the farther it is from those before."""
    chosen = [int(chance.integers(len(units)))]
    apart = 1 - units @ units[chosen[0]]
    while len(chosen) < count and (total := float(np.maximum(apart, 0).sum())) > 1e-6:
        chosen.append(int(chance.choice(len(units), p=np.maximum(apart, 0) / total)))
        apart = np.minimum(apart, 1 - units @ units[chosen[-1]])
    return units[chosen]


def _middle(units: NDArray[np.float32]) -> NDArray[np.float32]:
    total: NDArray[np.float32] = units.sum(axis=0)
    length = np.linalg.norm(total)
    return total / length if length > 0 else units[0]
