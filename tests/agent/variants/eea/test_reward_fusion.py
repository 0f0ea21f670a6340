"""The formulas of section 3.2 against the numbers they must give."""

from __future__ import annotations

import pytest

from agent.variants.eea.reward_fusion import fuse, query_score, reward_entropy


def test_query_score_is_a_soft_maximum_to_which_every_anchor_adds():
    assert query_score([0.32]) == pytest.approx(0.32)
    assert query_score([0.32, 0.2, 0.2]) == pytest.approx(0.367, abs=1e-3)
    assert query_score([0.95] * 40) == 1.0
    assert query_score([]) == 0.0


def test_entropy_on_the_scale_of_rewards():
    assert reward_entropy([100, 0, 0, 0, 0, 0, 0]) == pytest.approx(0.0, abs=1e-9)
    assert reward_entropy([50.0] * 7) == pytest.approx(1.0)
    assert reward_entropy([80, 80, 0, 0, 0, 0, 0]) == pytest.approx(0.356, abs=1e-3)
    assert reward_entropy([70.0]) == 0.0


def test_anchors_may_be_averaged_or_count_by_the_best_alone():
    # log-mean-exp, the paper's formula, falls when weaker anchors join.
    assert query_score([0.32, 0.2, 0.2], pooling="mean") == pytest.approx(0.257, abs=1e-3)
    assert query_score([1.0, 1.0], pooling="mean") == pytest.approx(1.0)
    assert query_score([0.32, 0.2, 0.2], pooling="best") == pytest.approx(0.32)
    for pooling in ("mean", "best"):
        assert query_score([0.32], pooling=pooling) == pytest.approx(0.32)
        assert query_score([], pooling=pooling) == 0.0


def test_a_higher_temperature_makes_rewards_less_sure():
    rewards = [80.0, 70.0, 0.0]
    entropies = [reward_entropy(rewards, temperature) for temperature in (1.0, 10.0, 100.0)]
    assert entropies == sorted(entropies)
    assert entropies[0] < 0.01
    assert entropies[2] > 0.9


def test_unknown_rewards_count_as_the_lowest():
    assert reward_entropy([None, None]) == 1.0
    assert reward_entropy([None]) == 1.0
    assert reward_entropy([90, None, None]) == pytest.approx(0.0, abs=1e-9)
    assert fuse(None, 0.5, 0.4) == pytest.approx(0.2)


def test_fusion_moves_from_reward_to_query_score():
    assert fuse(80, 0.3, 0.0) == pytest.approx(0.8)
    assert fuse(80, 0.3, 1.0) == pytest.approx(0.3)
    assert fuse(80, 0.3, 0.25) == pytest.approx(0.75 * 0.8 + 0.25 * 0.3)
