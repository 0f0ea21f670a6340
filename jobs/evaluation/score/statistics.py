"""Means over questions with their errors: questions about one video are not independent of each other.

A standard error is clustered by video (Miller 2024, arXiv 2411.00640, sections 2.2 and 4.2; the sandwich estimator of
Liang and Zeger 1986) with the small-sample factor G / (G - 1) for G videos, and an interval takes the quantile of
Student's t with G - 1 degrees of freedom (Cameron and Miller 2015, sections VI.B and VI.C). Where every video has as
many questions, this is exactly the t-test on the videos' means.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

CONFIDENCE = 0.95
LEVEL = (1.0 + CONFIDENCE) / 2.0
ROUNDING = 1e-12
"""A standard error below this is rounding: all videos agree."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over questions with its standard error clustered by video, and a 95 % confidence interval.

    `error`, `low` and `high` are None where there are fewer than two clusters. Over 0 questions (nothing that could be
    scored) the mean is 0 and says nothing.
    """

    mean: float
    error: float | None
    low: float | None
    high: float | None
    questions: int
    clusters: int


@dataclass(frozen=True, slots=True)
class Spread:
    """Distribution of a cost over questions."""

    mean: float
    median: float
    p90: float
    total: float


def clustered_error(values: Sequence[float], clusters: Sequence[Hashable]) -> float | None:
    """Standard error of the mean of clustered values; None with fewer than two clusters."""
    names = set(clusters)
    if len(names) < 2:
        return None
    mean = math.fsum(values) / len(values)
    sums = dict.fromkeys(names, 0.0)
    for value, cluster in zip(values, clusters, strict=True):
        sums[cluster] += value - mean
    squares = math.fsum(total * total for total in sums.values())
    error = math.sqrt(squares * len(names) / (len(names) - 1)) / len(values)
    return 0.0 if error < ROUNDING else error


def estimate(values: Sequence[float], clusters: Sequence[Hashable], lowest: float, highest: float) -> Estimate:
    """Estimate the mean, its error and its interval, cut to possible means; of no values it is 0 over 0 questions."""
    if not values:
        return Estimate(0.0, None, None, None, 0, 0)
    mean, count = math.fsum(values) / len(values), len(set(clusters))
    error = clustered_error(values, clusters)
    if error is None:
        return Estimate(mean, None, None, None, len(values), count)
    from scipy.special import stdtrit

    reach = float(stdtrit(count - 1, LEVEL)) * error
    return Estimate(mean, error, max(lowest, mean - reach), min(highest, mean + reach), len(values), count)


def p_value(difference: Estimate) -> float | None:
    """Probability of a mean at least this far from 0 if there is no difference (two-sided t-test).

    None where that is unknown: with fewer than two videos, or where all videos differ by the same.
    """
    if not difference.error:
        return None
    from scipy.special import stdtr

    return float(2.0 * stdtr(difference.clusters - 1, -abs(difference.mean) / difference.error))


def spread(values: Sequence[float]) -> Spread:
    """Describe the distribution of one or more values."""
    mean, median, p90 = float(np.mean(values)), float(np.median(values)), float(np.percentile(values, 90))
    return Spread(mean, median, p90, math.fsum(values))
