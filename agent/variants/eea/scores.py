"""Scores of EEA: the query score of a segment, the entropy of rewards, and the fusion of both (section 3.2).

The softmax behind the entropy is taken over rewards on the 0 to 100 scale: on 0 to 1 the entropy of seven segments
never falls below 0.95 and the fusion degenerates. Its temperature is left open. Models give rewards in steps of five
and ten, and at a temperature of 1 a lead of 10 points counts as certainty, so that the fusion is a switch; the
temperature here is chosen on such rewards (docs/papers.md has the figures).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

QUERY_TEMPERATURE = 0.1
REWARD_TEMPERATURE = 10.0
Pooling = Literal["mean", "sum", "best"]
POOLING: Pooling = "mean"


def query_score(
    similarities: Sequence[float], temperature: float = QUERY_TEMPERATURE, pooling: Pooling = POOLING
) -> float:
    """Softmax pooling of a segment's anchors, `tau * log(mean(exp(phi / tau)))`, 1 at most; 0 without anchors.

    "sum" takes the sum instead of the mean, so that a weak anchor never lowers the score of a strong one; "best" is the
    highest similarity alone.
    """
    if not similarities:
        return 0.0
    scaled = np.asarray(similarities, dtype=np.float64) / temperature
    peak = float(scaled.max())
    if pooling == "best":
        return temperature * peak
    pooled = np.exp(scaled - peak).sum() / (len(scaled) if pooling == "mean" else 1)
    return float(np.clip(temperature * (peak + float(np.log(pooled))), 0.0, 1.0))


def reward_entropy(rewards: Sequence[float | None], temperature: float = REWARD_TEMPERATURE) -> float:
    """Entropy of softmax(rewards / temperature), divided by its largest value, so from 0 to 1; rewards: 0 to 100.

    Segments without a reward take no part. Without any reward it is 1, with one alone 0.
    """
    known = np.asarray([reward for reward in rewards if reward is not None], dtype=np.float64)
    if len(known) == 0:
        return 1.0
    if len(known) == 1:
        return 0.0
    weights = np.exp((known - known.max()) / temperature)
    shares = weights / weights.sum()
    shares = shares[shares > 0]
    return float(np.clip(-(shares * np.log(shares)).sum() / np.log(len(known)), 0.0, 1.0))


def fuse(reward: float | None, query: float, entropy: float) -> float:
    """`(1 - H) r + H u` with the reward brought from 0..100 to 0..1; without a reward it is the query score."""
    return query if reward is None else (1.0 - entropy) * reward / 100.0 + entropy * query
