"""Divide a sequence into groups of neighbours, each as alike within as can be.

The sum of squares of each group about its mean, plus a price for every border, is least: found by dynamic programming
(Fisher 1958, "On grouping for maximum homogeneity"; Rotman et al. 2016 divide films so, "Robust and efficient video
scene detection using optimal sequential grouping"). A group's mean, not its neighbours, decides: a dialogue that cuts
to and fro between two faces is one group, where a threshold on neighbouring shots would find a border at every cut.

A sequence of n items with groups of at most m takes O(n m d) for d dimensions and O(n m) memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

STEPS = 12
"""Halvings of the range of prices, on a scale of logarithms."""
RANGE = 1e4
"""How far the price may be changed, either way."""
SHORT_COST = 3.0
"""Extra price of a group that is too short, in prices of a border: one that stands out that much stays."""
LAGS = 2
"""Items so far apart are near."""
STILL = 1e-9
"""Noise below this is rounding."""


@dataclass(frozen=True, slots=True)
class Feature:
    """One kind of evidence: `vectors` [n, d] and `weights` [n], 0 where an item lacks this evidence.

    Differences below `least_noise` (a squared distance) count as noise even where neighbours are more alike.
    """

    vectors: Floats
    weights: Floats
    least_noise: float


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a grouping: numbers of groups, most items in one, and the shortest length of a group.

    `border_price` is in units of noise: cutting pure noise in two lowers its sum of squares by one unit, by chance by
    two, and by more where neighbours are more alike than the group is, for they are what noise is measured by.
    """

    border_price: float
    fewest: int
    most: int
    longest_items: int
    shortest: float


def divide(features: Sequence[Feature], lengths: Floats, border_prices: Floats, limits: Limits) -> list[int]:
    """Divide n items into groups and return the first item of each.

    `lengths` [n] are those of the items; `border_prices` [n] scale the price of a border before each item (that of the
    first is not used). Only if the price gives fewer or more groups than `limits` allow is it changed. Where items are
    all alike there may be fewer than the fewest.
    """
    count = len(lengths)
    if not count:
        return []
    used = [each for each in features if np.count_nonzero(each.weights) > 1]
    longest = min(limits.longest_items, count)
    costs = sum((_band(each, longest) for each in used), np.zeros((count, longest)))
    unit = sum(float(np.median(each.weights[each.weights > 0])) for each in used) or 1.0
    shorts = SHORT_COST * _short(lengths, limits.shortest, longest)

    def at(price: float) -> list[int]:
        return _best_starts(costs + price * shorts, price * border_prices)

    return _within(at, limits.border_price * unit, limits)


def _within(at: Callable[[float], list[int]], price: float, limits: Limits) -> list[int]:
    """Change the price until the number of groups is allowed: the nearest price that is found by halving."""
    found = at(price)
    if limits.fewest <= len(found) <= limits.most:
        return found
    too_many = len(found) > limits.most
    near, far = 0.0, np.log(RANGE) if too_many else -np.log(RANGE)
    best = at(price * float(np.exp(far)))
    for _ in range(STEPS):
        middle = (near + far) / 2
        found = at(price * float(np.exp(middle)))
        if len(found) > limits.most if too_many else len(found) < limits.fewest:
            near = middle
        else:
            far, best = middle, found
    return best


def _band(feature: Feature, longest: int) -> Floats:
    """Sums of squares about the mean, in noise, of the k + 1 items up to i [n, longest]; inf before the first."""
    vectors, weights = feature.vectors, feature.weights
    held = weights > 0
    centred = (vectors - vectors[held].mean(axis=0)) * held[:, None]
    noise = max(_noise(centred[held]), feature.least_noise)
    sums = np.vstack([np.zeros(vectors.shape[1]), np.cumsum(centred * weights[:, None], axis=0)])
    squares = np.concatenate([[0.0], np.cumsum(weights * np.einsum("nd,nd->n", centred, centred))])
    totals = np.concatenate([[0.0], np.cumsum(weights)])
    norms = np.einsum("nd,nd->n", sums, sums)
    band = np.full((len(weights), longest), np.inf)
    for end in range(1, len(sums)):
        first = max(0, end - longest)
        between = norms[first:end] + norms[end] - 2.0 * (sums[first:end] @ sums[end])
        total = totals[end] - totals[first:end]
        mean = np.divide(between, total, out=np.zeros_like(total), where=total > 0)
        band[end - 1, : end - first] = np.maximum(squares[end] - squares[first:end] - mean, 0.0)[::-1]
    return band / noise


def _noise(vectors: Floats) -> float:
    """Variance within groups: half the median squared distance of items that are near, most of which share a group.

    Not of neighbours alone, which are more alike than others of their group where the picture changes little by little.
    """
    steps = [vectors[lag:] - vectors[:-lag] for lag in range(1, min(LAGS, len(vectors) - 1) + 1)]
    distances = np.concatenate([np.einsum("nd,nd->n", each, each) for each in steps])
    return max(float(np.median(distances)) / 2, STILL)


def _short(lengths: Floats, shortest: float, longest: int) -> Floats:
    """1 for each group of `_band` that is shorter than allowed, else 0 [n, longest]."""
    ends = np.concatenate([[0.0], np.cumsum(lengths)])
    short = np.zeros((len(lengths), longest))
    for items in range(1, longest + 1):
        short[items - 1 :, items - 1] = ends[items:] - ends[:-items] < shortest
    return short


def _best_starts(costs: Floats, prices: Floats) -> list[int]:
    """Find the groups of least cost, by the best grouping of each beginning of the sequence."""
    count, longest = costs.shape
    best = np.zeros(count + 1)
    begin = np.zeros(count + 1, np.int64)
    paid = np.concatenate([[0.0], prices[1:]])
    for end in range(1, count + 1):
        first = max(0, end - longest)
        totals = best[first:end] + paid[first:end] + costs[end - 1, : end - first][::-1]
        begin[end] = first + int(np.argmin(totals))
        best[end] = totals[begin[end] - first]
    starts, end = [], count
    while end:
        end = int(begin[end])
        starts.append(end)
    return starts[::-1]
