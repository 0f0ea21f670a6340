"""Errors clustered by video, evidence against true ranges, and answers that their evidence supports."""

from __future__ import annotations

import math
from itertools import pairwise
from statistics import fmean, stdev
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kinodex.agent.evidence import Evidence
from kinodex.jobs.eval.scoring.estimates import (
    LEAST_VIDEOS,
    clustered_error,
    difference,
    estimate,
    exact_p_value,
    p_value,
    spread,
)
from kinodex.jobs.eval.scoring.evidence import score_evidence
from kinodex.jobs.eval.scoring.gate import evidence_suffices, right_without_evidence
from tests.support.late import late

stats = late("scipy.stats")

# Errors clustered by video: against closed forms, against scipy's t-test, and against many runs by chance.


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
    assert p_value(found) == (None if videos < LEAST_VIDEOS else pytest.approx(expected.pvalue))
    assert (found.questions, found.clusters) == (videos * each, videos)


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    """Ten videos, of which some are hard for whoever asks; the naive error would be half of what it is."""
    random, runs, held, errors, means = np.random.default_rng(5), 800, 0, [], []
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


def test_with_few_videos_the_interval_of_a_share_holds_the_truth_where_students_does_not() -> None:
    """Five videos with ten questions of which most are easy: Student's interval held it 56 times of 100 when tried."""
    random, held, held_by_t, runs = np.random.default_rng(8), 0, 0, 400
    videos = clusters(5, 10)
    for _ in range(runs):
        easy = random.beta(0.97 * 4, 0.03 * 4, 5)
        values = (random.random(50) < np.repeat(easy, 10)).astype(float).tolist()
        share, mean = estimate(values, videos, 0.0, 1.0), estimate(values, videos, -10.0, 10.0)
        assert share.low is not None and share.high is not None
        held += share.low <= 0.97 <= share.high
        held_by_t += mean.low is not None and mean.high is not None and mean.low <= 0.97 <= mean.high
    assert held / runs >= 0.95
    assert held_by_t / runs < 0.75


@pytest.mark.parametrize(("only_a", "only_b"), [(5, 0), (3, 9), (1, 1), (40, 22)])
def test_mcnemar_is_the_exact_test_of_the_questions_that_one_alone_answered(only_a: int, only_b: int) -> None:
    assert exact_p_value(only_a, only_b) == pytest.approx(stats.binomtest(only_a, only_a + only_b).pvalue)
    assert exact_p_value(only_a, only_b) == exact_p_value(only_b, only_a)


# Evidence against true ranges.


TRUE = [(10.0, 20.0)]


@pytest.mark.parametrize(
    ("evidence", "hit", "overlap"),
    [
        ([("v", 10, 20)], True, 1.0),
        ([("v", 15, 25)], True, 5 / 15),
        ([("v", 12, 13), ("v", 12.5, 14)], True, 2 / 10),
        ([("v", 0, 100)], True, 0.1),
        ([("v", 20, 30)], False, 0.0),
        ([("other", 10, 20)], False, 0.0),
        ([("v", 10, 20), ("other", 0, 10)], True, 0.5),
        ([], False, 0.0),
    ],
)
def test_evidence_hits_where_it_lies_in_a_true_range_and_overlaps_by_its_share(evidence, hit, overlap) -> None:
    found = score_evidence([Evidence(*each) for each in evidence], {"v"}, TRUE)
    assert found.hit == hit
    assert found.overlap == pytest.approx(overlap)


# Right answers with and without support, of those that the gate looked at.


@pytest.mark.parametrize(
    ("score", "supported", "without", "alone"),
    [
        (1.0, True, False, True),
        (1.0, False, True, False),
        (0.0, True, False, False),
        (0.0, False, False, False),
        (2 / 3, False, True, False),
        (1.0, None, None, None),
        (None, True, None, None),
    ],
)
def test_right_answers_are_told_by_their_support(
    score: float | None, supported: bool | None, without: bool | None, alone: bool | None
) -> None:
    result: Any = SimpleNamespace(score=score, record=SimpleNamespace(supported=supported))
    assert (right_without_evidence(result), evidence_suffices(result)) == (without, alone)


@pytest.mark.parametrize("videos", [2, LEAST_VIDEOS - 1, LEAST_VIDEOS, 30])
def test_a_difference_has_a_clustered_interval_where_it_has_a_clustered_p(videos: int) -> None:
    values = np.random.default_rng(1).integers(-1, 2, 3 * videos).astype(float).tolist()
    found = difference(values, clusters(videos, 3))
    enough = videos >= LEAST_VIDEOS
    assert found.mean == pytest.approx(fmean(values))
    assert [each is not None for each in (found.low, found.high, found.error, p_value(found))] == [enough] * 4
    whole = estimate(values, clusters(videos, 3), -1.0, 1.0)
    assert whole.low is not None and (not enough or found == whole)


def test_by_hand_with_videos_of_different_sizes() -> None:
    values, videos = [1.0, 1.0, 1.0, 0.0, 0.0], ["a", "a", "a", "b", "c"]
    # The mean is 0.6; the sums of deviations are 1.2, -0.6 and -0.6; 3 / 2 * (1.44 + 0.36 + 0.36) / 25 = 0.1296.
    assert clustered_error(values, videos) == pytest.approx(0.36)


def test_nothing_is_said_of_one_video_or_of_no_question() -> None:
    alone = estimate([1.0, 0.0], ["a", "a"], 0.0, 1.0)
    assert (alone.mean, alone.error, alone.low, alone.high, alone.clusters) == (0.5, None, None, None, 1)
    assert p_value(alone) is None
    none = estimate([], [], 0.0, 1.0)
    assert (none.error, none.questions, none.clusters) == (None, 0, 0)


def test_where_all_videos_say_the_same_there_is_no_error_and_no_p() -> None:
    same = estimate([0.1, 0.2, 0.3] * 7, clusters(7, 3), -1.0, 1.0)
    assert (same.error, same.low, same.high) == (None, None, None)
    assert p_value(same) is None


@pytest.mark.parametrize(("right", "low", "high"), [(0, 0.0, 0.6024), (20, 0.3976, 1.0)])
def test_all_right_or_all_wrong_is_no_more_certain_than_as_many_questions_as_videos(right, low, high) -> None:
    found = estimate([float(number < right) for number in range(20)], clusters(4, 5), 0.0, 1.0)
    assert found.error is None
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-4)
    exact = stats.binomtest(4 if right else 0, 4).proportion_ci(method="exact")
    assert (found.low, found.high) == pytest.approx((exact.low, exact.high))


def test_spread() -> None:
    costs = spread([float(number) for number in range(1, 12)])
    assert (costs.mean, costs.median, costs.p90, costs.total) == pytest.approx((6.0, 6.0, 10.0, 66.0))
    assert spread([3]) == spread([3.0])
