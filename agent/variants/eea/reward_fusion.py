"""Uncertainty-aware reward fusion (EEA, section 3.2): the weight of the model's rewards against the queries' matches.

Left open by the paper and decided here: the softmax behind the entropy is taken over rewards on the 0 to
100 scale (on 0 to 1 the entropy of seven segments never falls below 0.95 and the fusion degenerates);
rewards and query scores are mixed on one 0 to 1 scale; with one candidate the entropy is 0; a candidate
without a reward counts as the lowest, 0, and if none has one the entropy is 1; a segment without anchors
has the lowest query score, 0.

The paper's formula pools anchors by the mean, so that a weak anchor lowers the score of a strong one, although its
prompt calls the score how many relevant clips a segment holds (Table 9). Here they are summed, as that says: in
simulated search it shows evidence more often, and on sketch films it needs no more frames (docs/simulation.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

QUERY_TEMPERATURE = 0.1
REWARD_TEMPERATURE = 1.0
Pooling = Literal["mean", "sum", "best"]
POOLING: Pooling = "sum"


def query_score(
    similarities: Sequence[float], temperature: float = QUERY_TEMPERATURE, pooling: Pooling = POOLING
) -> float:
    """Softmax pooling of a segment's anchors, `tau * log(sum(exp(phi / tau)))`, 1 at most; 0 without anchors.

    "mean" takes the mean instead of the sum, as the paper does; "best" is the highest similarity alone.
    """
    if not similarities:
        return 0.0
    scaled = np.asarray(similarities, dtype=np.float64) / temperature
    peak = float(scaled.max())
    if pooling == "best":
        return temperature * peak
    pooled = np.exp(scaled - peak).sum() / (len(scaled) if pooling == "mean" else 1)
    return min(1.0, temperature * (peak + float(np.log(pooled))))


def reward_entropy(rewards: Sequence[float | None], temperature: float = REWARD_TEMPERATURE) -> float:
    """Entropy of softmax(rewards / temperature), divided by its largest value, so from 0 to 1; rewards: 0 to 100."""
    if all(reward is None for reward in rewards):
        return 1.0
    if len(rewards) == 1:
        return 0.0
    known = np.asarray([reward or 0.0 for reward in rewards], dtype=np.float64)
    weights = np.exp((known - known.max()) / temperature)
    shares = weights / weights.sum()
    shares = shares[shares > 0]
    return float(np.clip(-(shares * np.log(shares)).sum() / np.log(len(rewards)), 0.0, 1.0))


def fuse(reward: float | None, query: float, entropy: float) -> float:
    """`(1 - H) r + H u` with the reward brought from 0..100 to 0..1."""
    return (1.0 - entropy) * (reward or 0.0) / 100.0 + entropy * query
