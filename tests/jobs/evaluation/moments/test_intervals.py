"""IoU of ranges by hand, and AUROC as scikit-learn has it."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from kinodex.jobs.eval.moments import auroc, best_iou, iou


def test_iou_by_hand() -> None:
    assert iou(("v", 0, 10), ("v", 5, 20)) == pytest.approx(5 / 20)
    assert iou(("v", 0, 10), ("v", 0, 10)) == 1.0
    assert iou(("v", 2, 4), ("v", 0, 10)) == pytest.approx(0.2)
    assert iou(("v", 0, 10), ("v", 10, 20)) == 0.0
    assert iou(("v", 0, 10), ("w", 0, 10)) == 0.0
    assert iou(("v", 3, 3), ("v", 3, 3)) == 0.0


def test_the_true_range_that_fits_best_counts() -> None:
    assert best_iou(("v", 0, 10), [("v", 50, 60), ("v", 5, 10), ("w", 0, 10)]) == pytest.approx(0.5)
    assert best_iou(None, [("v", 0, 1)]) == 0.0
    assert best_iou(("v", 0, 10), []) == 0.0


def test_auroc_is_that_of_scikit_learn_with_ties() -> None:
    chance = np.random.default_rng(5)
    for _ in range(20):
        present, absent = chance.integers(0, 6, 12).astype(float), chance.integers(-2, 4, 9).astype(float)
        known = roc_auc_score([1] * 12 + [0] * 9, [*present, *absent])
        assert auroc(present.tolist(), absent.tolist()) == pytest.approx(known)
    assert auroc([], [1.0]) is None
