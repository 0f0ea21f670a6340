"""Figures of one ranked list: R@k, average precision and nDCG, as information retrieval defines them.

`gains` are the worths of the results in the order in which a search gave them, 0 for one that is not relevant;
`ideal` are the worths of all that is relevant, found or not. What is relevant and was not found
counts as nothing, at the end of the list. Equal scores keep the order of the search, which breaks ties by video and
time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from kinodex.jobs.eval.moments.cases import Found


def moment_gains(found: Sequence[Found], relevant: Sequence[Found], grades: Sequence[float]) -> list[float]:
    """Worth of each result in order: that of the true range in which its middle lies, once for each range.

    A further result in a range that was found before is passed over. Where true ranges overlap, the first that was not
    found before counts.
    """
    left = dict(enumerate(relevant))
    gains = []
    for each in found:
        inside = [number for number, target in enumerate(relevant) if _holds(target, each)]
        new = next((number for number in inside if number in left), None)
        if new is not None:
            del left[new]
            gains.append(grades[new])
        elif not inside:
            gains.append(0.0)
    return gains


def video_gains(found: Sequence[Found], relevant: Sequence[Found], grades: Sequence[float]) -> list[float]:
    """Worth of each video in the order of its first result: the greatest worth of its true ranges, 0 without one."""
    worth = video_worths(relevant, grades)
    return [worth.get(video, 0.0) for video in dict.fromkeys(video for video, _, _ in found)]


def video_worths(relevant: Sequence[Found], grades: Sequence[float]) -> dict[str, float]:
    """Return the greatest worth of a true range of each video that has any."""
    worth: dict[str, float] = {}
    for (video, _, _), grade in zip(relevant, grades, strict=True):
        worth[video] = max(grade, worth.get(video, 0.0))
    return worth


def _holds(target: Found, found: Found) -> bool:
    middle_s = (found[1] + found[2]) / 2
    return target[0] == found[0] and target[1] <= middle_s < target[2]


def recall_at(gains: Sequence[float], k: int) -> float:
    """1 if something relevant is among the first `k` results: R@k of text-to-video retrieval (arXiv 2001.09099)."""
    return float(any(gain > 0 for gain in gains[:k]))


def average_precision(gains: Sequence[float], ideal: Sequence[float]) -> float:
    """Mean of the precision at the rank of each relevant result, 0 for those not found: `map` of `trec_eval`."""
    relevant = sum(gain > 0 for gain in ideal)
    found, total = 0, 0.0
    for rank, gain in enumerate(gains, start=1):
        if gain > 0:
            found += 1
            total += found / rank
    return total / relevant if relevant else 0.0


def ndcg_at(gains: Sequence[float], ideal: Sequence[float], k: int) -> float:
    """Discounted gain of the first `k` results over that of the best possible list: `ndcg_cut` of `trec_eval`.

    Gains are the grades themselves, the discount log2(rank + 1) (Jarvelin and Kekalainen 2002, ACM TOIS 20).
    """
    best = _discounted(sorted(ideal, reverse=True)[:k])
    return _discounted(gains[:k]) / best if best > 0 else 0.0


def _discounted(gains: Sequence[float]) -> float:
    return math.fsum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))
