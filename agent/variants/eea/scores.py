"""Scores of EEA: the query score of a segment, the entropy of rewards, and the fusion of both (section 3.2).

The softmax behind the entropy is taken over rewards on the 0 to 100 scale of the prompts, without a temperature, since
the paper names none: equal rewards give 1, a lead of ten points gives nearly 0, as in the two peaks of the paper's
Figure 4. Over rewards from 0 to 1 the entropy of seven segments would never fall below 0.95.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

QUERY_TEMPERATURE = 0.1
"""tau_c of the softmax that pools a segment's anchors (section 4.1)."""


def query_score(similarities: Sequence[float]) -> float:
    """Pool the similarities of a segment's anchors, `tau * log(mean(exp(phi / tau)))`, 1 at most; 0 without anchors.

    >>> query_score([0.4, 0.4])
    0.4
    """
    if not similarities:
        return 0.0
    scaled = np.asarray(similarities, dtype=np.float64) / QUERY_TEMPERATURE
    peak = float(scaled.max())
    pooled = float(np.exp(scaled - peak).mean())
    return float(np.clip(QUERY_TEMPERATURE * (peak + np.log(pooled)), 0.0, 1.0))


def reward_entropy(rewards: Sequence[float | None]) -> float:
    """Return the entropy of softmax(rewards), divided by its largest value, so from 0 to 1; of one reward it is 0.

    A segment without a reward counts as 0.

    >>> reward_entropy([70, 70, 70])
    1.0
    """
    if len(rewards) == 1:
        return 0.0
    known = np.asarray([reward or 0.0 for reward in rewards], dtype=np.float64)
    weights = np.exp(known - known.max())
    shares = weights / weights.sum()
    shares = shares[shares > 0]
    return float(np.clip(-(shares * np.log(shares)).sum() / np.log(len(known)), 0.0, 1.0))


def fuse(reward: float, query: float, entropy: float) -> float:
    """Return `(1 - H) r + H u` with the reward brought from 0..100 to 0..1."""
    return (1.0 - entropy) * reward / 100.0 + entropy * query
