"""Means over questions with their errors: questions about one video are not independent of each other.

A standard error is clustered by video (Miller 2024, arXiv 2411.00640, sections 2.2 and 4.2; the sandwich estimator of
Liang and Zeger 1986) with the small-item factor G / (G - 1) for G videos, and an interval takes the quantile of
Student's t with G - 1 degrees of freedom (Cameron and Miller 2015, sections VI.B and VI.C). Where every video has as
many questions, this is exactly the t-test on the videos' means.

With few videos, or where all agree, that error is itself not known. Then a share has the exact interval of Clopper
and Pearson on an effective number of questions (Korn and Graubard 1998, Survey Methodology 24): as many independent
ones as would have the same variance. And a difference has the exact test of McNemar (1947) beside it, which counts
the questions that only one of the two answered, as if each were independent.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np

CONFIDENCE = 0.95
LEVEL = (1.0 + CONFIDENCE) / 2.0
ROUNDING = 1e-12
"""A standard error below this is rounding: all videos agree."""
FEW_VIDEOS = 20
"""With fewer clusters, clustered errors are known to be unsteady (Cameron and Miller 2015, section VI)."""
LEAST_VIDEOS = 8
"""With fewer clusters a difference has neither a clustered p-value nor a clustered interval."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over questions with its standard error clustered by video, and a 95 % confidence interval.

    `error`, `low` and `high` are None where clusters are too few, or all agree. Over 0 questions the mean says nothing.
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
    """Estimate the mean, its error and its interval, cut to possible means; one from 0 to 1 is taken as a share."""
    if not values:
        return Estimate(0.0, None, None, None, 0, 0)
    mean, count = math.fsum(values) / len(values), len(set(clusters))
    error = clustered_error(values, clusters)
    is_share = (lowest, highest) == (0.0, 1.0)
    if error is not None and is_share and (error == 0 or count < FEW_VIDEOS):
        low, high = share_interval(mean, error, len(values), count)
    elif error:
        from scipy.special import stdtrit

        reach = float(stdtrit(count - 1, LEVEL)) * error
        low, high = max(lowest, mean - reach), min(highest, mean + reach)
    else:
        return Estimate(mean, None, None, None, len(values), count)
    return Estimate(mean, error or None, low, high, len(values), count)


def difference(values: Sequence[float], clusters: Sequence[Hashable]) -> Estimate:
    """Estimate a mean difference; with fewer than `LEAST_VIDEOS` clusters without error and interval, as `p_value`."""
    found = estimate(values, clusters, -1.0, 1.0)
    return found if found.clusters >= LEAST_VIDEOS else replace(found, error=None, low=None, high=None)


def share_interval(share: float, error: float, questions: int, clusters: int) -> tuple[float, float]:
    """Exact 95 % interval of a share over `questions` with a clustered standard error, of two clusters or more.

    Where all videos agree on all or nothing, nothing says how far their questions go together, and each video counts
    as one question. Scores between 0 and 1 vary less than shares of the same mean: for them the interval is too wide.
    """
    from scipy.special import betaincinv, stdtrit

    if share <= 0.0 or share >= 1.0:
        effective = float(clusters)
    else:
        effective = questions if error == 0 else min(float(questions), share * (1.0 - share) / error**2)
        # The error is known from few videos: its effective number shrinks as Student's t grows.
        effective *= float(stdtrit(questions - 1, LEVEL) / stdtrit(clusters - 1, LEVEL)) ** 2
    right = share * effective
    low = 0.0 if share <= 0.0 else float(betaincinv(right, effective - right + 1.0, 1.0 - LEVEL))
    high = 1.0 if share >= 1.0 else float(betaincinv(right + 1.0, effective - right, LEVEL))
    return low, high


def p_value(difference: Estimate) -> float | None:
    """Probability of a mean this far from 0 if there is no difference (two-sided t-test); None where it is unknown."""
    if not difference.error or difference.clusters < LEAST_VIDEOS:
        return None
    from scipy.special import stdtr

    return float(2.0 * stdtr(difference.clusters - 1, -abs(difference.mean) / difference.error))


def exact_p_value(only_a: int, only_b: int) -> float | None:
    """Probability of counts at least this uneven if either is as likely (McNemar's exact test, two-sided)."""
    if not only_a + only_b:
        return None
    from scipy.special import bdtr

    return min(1.0, 2.0 * float(bdtr(min(only_a, only_b), only_a + only_b, 0.5)))


def spread(values: Sequence[float]) -> Spread:
    """Describe the distribution of one or more values."""
    mean, median, p90 = float(np.mean(values)), float(np.median(values)), float(np.percentile(values, 90))
    return Spread(mean, median, p90, math.fsum(values))
