"""Errors clustered by video: against closed forms, against scipy's t-test, and against many runs by chance."""

from __future__ import annotations

import math
from itertools import pairwise
from statistics import fmean, stdev

import numpy as np
import pytest
from scipy import stats

from jobs.evaluation.score.statistics import clustered_error, estimate, p_value, spread


def by_video(values, each: int):
    """The means of the videos, with `each` questions a video in order."""
    return [fmean(values[start:end]) for start, end in pairwise(range(0, len(values) + 1, each))]


def clusters(videos: int, each: int) -> list[str]:
    return [f"v{number}" for number in range(videos) for _ in range(each)]


@pytest.mark.parametrize(("videos", "each"), [(2, 1), (7, 1), (9, 4), (30, 15)])
def test_with_as_many_questions_a_video_it_is_the_t_test_of_the_videos_means(videos: int, each: int) -> None:
    values = np.random.default_rng(videos).integers(0, 2, videos * each).astype(float).tolist()
    values[0], values[-1] = 0.0, 1.0  # so that the videos differ
    found = estimate(values, clusters(videos, each), -10.0, 10.0)
    means = by_video(values, each)
    expected = stats.ttest_1samp(means, 0.0)
    interval = expected.confidence_interval(0.95)
    assert found.mean == pytest.approx(fmean(means))
    assert found.error == pytest.approx(stdev(means) / math.sqrt(videos))
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))
    assert p_value(found) == pytest.approx(expected.pvalue)
    assert (found.questions, found.clusters) == (videos * each, videos)


def test_by_hand_with_videos_of_different_sizes() -> None:
    values, videos = [1.0, 1.0, 1.0, 0.0, 0.0], ["a", "a", "a", "b", "c"]
    # The mean is 0.6; the sums of deviations are 1.2, -0.6 and -0.6; 3 / 2 * (1.44 + 0.36 + 0.36) / 25 = 0.1296.
    assert clustered_error(values, videos) == pytest.approx(0.36)


def test_questions_about_one_video_that_go_together_count_as_one() -> None:
    once = [1.0, 0.0, 1.0, 1.0, 0.0, 1.0]
    many = [value for value in once for _ in range(50)]
    assert clustered_error(many, clusters(6, 50)) == pytest.approx(clustered_error(once, clusters(6, 1)))


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    """Ten videos, of which some are hard for whoever asks; the naive error would be half of what it is."""
    random, runs, held, errors, means = np.random.default_rng(5), 1500, 0, [], []
    videos = clusters(10, 12)
    naive = []
    for _ in range(runs):
        hard = np.repeat(random.normal(0.0, 0.25, 10), 12)
        values = (0.5 + hard + random.normal(0.0, 0.4, 120)).tolist()
        found = estimate(values, videos, -10.0, 10.0)
        assert found.error is not None and found.low is not None and found.high is not None
        held += found.low <= 0.5 <= found.high
        means.append(found.mean)
        errors.append(found.error**2)
        naive.append(np.var(values) / 120)
    assert held / runs == pytest.approx(0.95, abs=0.015)
    assert math.sqrt(fmean(errors)) == pytest.approx(stdev(means), rel=0.06)
    assert math.sqrt(fmean(naive)) < 0.6 * stdev(means)


def test_p_is_right_as_often_as_it_says_where_there_is_no_difference() -> None:
    random, small = np.random.default_rng(6), 0
    for _ in range(1500):
        values = np.repeat(random.normal(0.0, 0.3, 12), 5) + random.normal(0.0, 0.5, 60)
        p = p_value(estimate(values.tolist(), clusters(12, 5), -10.0, 10.0))
        small += p is not None and p < 0.05
    assert small / 1500 == pytest.approx(0.05, abs=0.015)


def test_nothing_is_said_of_one_video_or_of_no_question() -> None:
    alone = estimate([1.0, 0.0], ["a", "a"], 0.0, 1.0)
    assert (alone.mean, alone.error, alone.low, alone.high, alone.clusters) == (0.5, None, None, None, 1)
    assert p_value(alone) is None
    none = estimate([], [], 0.0, 1.0)
    assert (none.error, none.questions, none.clusters) == (None, 0, 0)


def test_where_all_videos_say_the_same_there_is_no_error_and_no_p() -> None:
    same = estimate([0.1, 0.2, 0.3] * 7, clusters(7, 3), -1.0, 1.0)
    assert same.error == 0.0
    assert same.low == same.high == same.mean
    assert p_value(same) is None


def test_an_interval_is_cut_to_what_a_mean_can_be() -> None:
    wide = estimate([1.0, 1.0, 1.0, 0.0], ["a", "b", "c", "d"], 0.0, 1.0)
    assert (wide.low, wide.high) == (0.0, 1.0)


def test_spread() -> None:
    costs = spread([float(number) for number in range(1, 12)])
    assert (costs.mean, costs.median, costs.p90, costs.total) == pytest.approx((6.0, 6.0, 10.0, 66.0))
    assert spread([3]) == spread([3.0])
