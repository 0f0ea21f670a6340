"""Figures of ranked lists: by hand, and equal to those of TREC's own program and of scikit-learn."""

from __future__ import annotations

import math

import numpy as np
import pytest
import pytrec_eval
from sklearn.metrics import average_precision_score, ndcg_score

from kinodex.jobs.eval.moments import average_precision, ndcg_at, recall_at


def test_by_hand() -> None:
    gains, ideal = [0, 1, 0, 1], [1, 1, 1]
    assert [recall_at(gains, k) for k in (1, 2, 10)] == [0.0, 1.0, 1.0]
    assert average_precision(gains, ideal) == pytest.approx((1 / 2 + 2 / 4) / 3)
    best = 1 + 1 / math.log2(3) + 1 / math.log2(4)
    assert ndcg_at(gains, ideal, 10) == pytest.approx((1 / math.log2(3) + 1 / math.log2(5)) / best)
    assert ndcg_at([0, 3, 0, 1], [3, 1], 2) == pytest.approx((3 / math.log2(3)) / (3 + 1 / math.log2(3)))
    assert (average_precision([], [1]), ndcg_at([], [1], 10), recall_at([], 5)) == (0.0, 0.0, 0.0)
    assert (average_precision([0, 0], []), ndcg_at([0, 0], [], 10)) == (0.0, 0.0)


def test_equal_to_trec_eval_on_random_lists_with_grades_and_with_some_not_found() -> None:
    chance = np.random.default_rng(17)
    for _ in range(50):
        grades = chance.choice([0, 0, 0, 1, 2, 3], 30)
        grades[0] = 1  # something is relevant
        found = chance.permutation(30)[: int(chance.integers(1, 31))]
        run = {"q": {f"d{at}": float(-rank) for rank, at in enumerate(found)}}
        truth = {"q": {f"d{at}": int(grade) for at, grade in enumerate(grades)}}
        trec = pytrec_eval.RelevanceEvaluator(truth, {"map", "ndcg_cut.10", "success.1,5,10"}).evaluate(run)["q"]
        gains, ideal = [float(grades[at]) for at in found], [float(grade) for grade in grades if grade > 0]
        assert average_precision(gains, ideal) == pytest.approx(trec["map"])
        assert ndcg_at(gains, ideal, 10) == pytest.approx(trec["ndcg_cut_10"])
        assert [recall_at(gains, k) for k in (1, 5, 10)] == [trec[f"success_{k}"] for k in (1, 5, 10)]


def test_equal_to_scikit_learn_where_all_is_ranked() -> None:
    chance = np.random.default_rng(18)
    for _ in range(20):
        grades, scores = chance.integers(0, 4, 25).astype(float), chance.permutation(25).astype(float)
        grades[3] = 2.0
        gains = [float(grades[at]) for at in np.argsort(-scores)]
        ideal = [float(grade) for grade in grades if grade > 0]
        assert ndcg_at(gains, ideal, 10) == pytest.approx(ndcg_score([grades], [scores], k=10))
        assert average_precision(gains, ideal) == pytest.approx(average_precision_score(grades > 0, scores))
