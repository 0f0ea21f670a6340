"""The formulas of EEA's section 3.2 give the numbers that they must give."""

from __future__ import annotations

import pytest

from kinodex.agent.variants.eea import fuse, query_score, reward_entropy


def test_query_score_is_the_papers_log_mean_exp() -> None:
    assert query_score([0.32]) == pytest.approx(0.32)
    assert query_score([0.32, 0.2, 0.2]) == pytest.approx(0.257, abs=1e-3)
    assert query_score([1.0, 1.0]) == pytest.approx(1.0)
    assert query_score([]) == 0.0


def test_by_the_sum_every_anchor_adds_and_by_the_best_no_other_counts() -> None:
    assert query_score([0.32, 0.2, 0.2], pooling="sum") == pytest.approx(0.367, abs=1e-3)
    assert query_score([0.95] * 40, pooling="sum") == 1.0
    assert query_score([0.32, 0.2, 0.2], pooling="best") == pytest.approx(0.32)


def test_entropy_on_the_scale_of_rewards() -> None:
    assert reward_entropy([100, 0, 0, 0, 0, 0, 0]) == pytest.approx(0.0, abs=1e-2)
    assert reward_entropy([50.0] * 7) == pytest.approx(1.0)
    assert reward_entropy([80, 80, 0, 0, 0, 0, 0], 1.0) == pytest.approx(0.356, abs=1e-3)
    assert reward_entropy([70.0]) == 0.0


@pytest.mark.parametrize(("lead", "entropy"), [(5, 0.99), (10, 0.95), (30, 0.49), (50, 0.12), (70, 0.02)])
def test_a_lead_in_steps_of_five_or_ten_is_graded_not_switched(lead: float, entropy: float) -> None:
    rewards = [20.0 + lead, *[20.0] * 6]
    assert reward_entropy(rewards) == pytest.approx(entropy, abs=0.01)
    assert lead < 10 or reward_entropy(rewards, 1.0) < 0.005


def test_a_higher_temperature_makes_rewards_less_sure() -> None:
    rewards = [80.0, 70.0, 0.0]
    entropies = [reward_entropy(rewards, temperature) for temperature in (1.0, 10.0, 100.0)]
    assert entropies == sorted(entropies)
    assert entropies[0] < 0.01
    assert entropies[2] > 0.9


def test_what_was_not_rated_takes_no_part_and_is_scored_by_its_matches() -> None:
    assert reward_entropy([None, None]) == 1.0
    assert reward_entropy([None]) == 1.0
    assert reward_entropy([90, None, None]) == 0.0
    assert reward_entropy([50, 50, None]) == pytest.approx(1.0)
    assert fuse(None, 0.5, 0.4) == 0.5


def test_fusion_moves_from_reward_to_query_score() -> None:
    assert fuse(80, 0.3, 0.0) == pytest.approx(0.8)
    assert fuse(80, 0.3, 1.0) == pytest.approx(0.3)
    assert fuse(80, 0.3, 0.25) == pytest.approx(0.75 * 0.8 + 0.25 * 0.3)
