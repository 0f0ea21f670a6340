"""Figures of one ranked list: R@k, average precision and nDCG, as information retrieval defines them.

`gains` are the worths of the results in the order in which a search gave them, 0 for one that is not relevant; `ideal`
are the worths of all that is relevant, found or not. What was not found counts as nothing at the end of the list. Equal
scores are not averaged over their orders: the order is the search's own, which breaks ties by video and time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence


def recall_at(gains: Sequence[float], k: int) -> float:
    """1 if something relevant is among the first `k` results, else 0: R@k of text-to-video retrieval.

    Defined so by MSR-VTT's retrieval (Yu et al. 2018, arXiv 1808.02559) and TVR (Lei et al. 2020, arXiv 2001.09099),
    not as the share of all that is relevant.
    """
    return float(any(gain > 0 for gain in gains[:k]))


def average_precision(gains: Sequence[float], ideal: Sequence[float]) -> float:
    """Mean of the precision at the rank of each relevant result, 0 for those not found: TREC's `map` for one query.

    Grades do not count. (Voorhees and Harman 2005, TREC, chapter 3; `trec_eval` computes the same.)
    """
    relevant = sum(gain > 0 for gain in ideal)
    found, total = 0, 0.0
    for rank, gain in enumerate(gains, start=1):
        if gain > 0:
            found += 1
            total += found / rank
    return total / relevant if relevant else 0.0


def ndcg_at(gains: Sequence[float], ideal: Sequence[float], k: int) -> float:
    """Discounted gain of the first `k` results over that of the best possible list.

    Gains are the grades themselves and the discount is log2(rank + 1) (Jarvelin and Kekalainen 2002, ACM TOIS 20;
    `trec_eval`'s `ndcg_cut`).
    """
    best = _discounted(sorted(ideal, reverse=True)[:k])
    return _discounted(gains[:k]) / best if best > 0 else 0.0


def _discounted(gains: Sequence[float]) -> float:
    return math.fsum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))
