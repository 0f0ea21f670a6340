"""One scale for all matches: deviations from what is usual in a video, and similarities from 0 to 1.

A cosine of 0.3 is a match in one space and noise in another, and a score of words means nothing beside either. So every
match is measured by how rare it is. Of vectors it is the deviation `z` from the median of the query over the video, in
robust standard deviations: chance reaches 3.5 once in a few thousand frames. A match of words has a probability to
occur by chance (`word_deviations`), and the deviation that a normal distribution exceeds as rarely.

A similarity is `z / (z + 6)`, 0 at and below the median: the best of a few thousand unrelated frames gets 0.37, one
that stands out (z = 12) 0.67. It has no upper end at which strong matches would become equal.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from kinodex.index.search.fusion import plain_words

Floats = NDArray[np.float64]
SIMILARITY_MIDPOINT = 6.0
"""The deviation from the median that is calibrated to 0.5."""
SAME_DISTANCE_SHARE = 1.4826
"""Standard deviations in one median absolute deviation of a normal distribution."""
FLAT = 1e-6
"""A deviation of cosines below this is rounding."""
NO_MATCH = -np.inf
"""The deviation of what does not match at all."""
_NORMAL = NormalDist()
_LEAST_CHANCE = 1e-300


def robust_deviations(cosines: Floats, known: Floats) -> Floats:
    """Deviations [n, t] of cosines from the median of those `known` [m, t], in their robust standard deviations.

    The `t` queries have one scale, their mean: with a scale each, a weak match of a query that resembles few frames
    would beat a strong match of one that resembles many. All are 0 where nothing differs.
    """
    middle = np.median(known, axis=0)
    scale = SAME_DISTANCE_SHARE * float(np.median(np.abs(known - middle), axis=0).mean())
    scale = scale if scale >= FLAT else float(known.std(axis=0).mean())
    return (cosines - middle) / scale if scale >= FLAT else np.zeros_like(cosines)


def deviation_of_chance(chance: float) -> float:
    """The deviation that a normal distribution exceeds with this probability."""
    return NO_MATCH if chance >= 1.0 else -_NORMAL.inv_cdf(max(chance, _LEAST_CHANCE))


def calibrate(deviations: Floats, midpoint: float = SIMILARITY_MIDPOINT) -> Floats:
    """Map deviations to similarities from 0 to 1, `midpoint` to 0.5."""
    above = np.maximum(deviations, 0.0)
    calibrated: Floats = above / (above + midpoint)
    return calibrated


# Matches of a query's words with lines, each as rare as it is by chance.
#
# If the words of a query fell into lines independently, each as often as it does, a line would hold a given set of them
# with the product of their rates: its surprise is the sum of the words' log rarities, which is also what BM25 adds up
# for a line of usual length. The chance of a line is the probability that such a line holds words at least as
# surprising. It grows with the number of words that a query has, so that a long question is not found in every line.
#
# A lone common word is nothing: a line counts only if it is less likely than not, and if fewer lines would match as
# well by chance than there are places (`places`), as for the best frames of a video, of which so many are taken
# whatever they show.
#
# No stemming, and words are cut as the library's search cuts them, apart from scripts without spaces, of which pairs of
# characters are words here. Repeated words count once, and a long line is no different from a short one.

LIKELY = 0.5
"""The chance from which a match is no match, as a cosine is none below the median."""
STEP = 0.05
"""Surprises, in nats, are rounded to multiples of this."""
REMEMBERED_LINES = 65_536


@lru_cache(REMEMBERED_LINES)
def words_of(text: str) -> frozenset[str]:
    """The different words of a text as a search compares them; of Chinese, Japanese, Thai and the like pairs."""
    return frozenset(plain_words(text))


def word_deviations(query: str, lines: Sequence[str], known: Sequence[str], places: int) -> Floats:
    """Deviations [n] by which lines match a query's words; `NO_MATCH` for those that share none that tell.

    Rates of words are those of the lines `known`, among which `lines` are.
    """
    query_words = words_of(query)
    counts = Counter(word for line in known for word in query_words & words_of(line))
    surprise = {word: _steps(count, len(known)) for word, count in counts.items()}
    tail = _chances(surprise.values())
    found = np.full(len(lines), NO_MATCH)
    for at, line in enumerate(lines):
        chance = tail[sum(surprise.get(word, 0) for word in query_words & words_of(line))]
        if chance < LIKELY and chance * len(known) < places:
            found[at] = deviation_of_chance(chance)
    return found


def _rate(steps: int) -> float:
    return math.exp(-STEP * steps)


def _steps(count: int, lines: int) -> int:
    """The surprise, in steps, of a word that stands in `count` of so many lines."""
    return round(-math.log((count + 0.5) / (lines + 1)) / STEP)


def _chances(surprises: Iterable[int]) -> Floats:
    """The probability of each sum of surprises, in steps from 0, that chance reaches it or more."""
    spread = np.ones(1)
    for steps in surprises:
        held = np.zeros(len(spread) + steps)
        held[steps:] = spread * _rate(steps)
        held[: len(spread)] += spread * (1.0 - _rate(steps))
        spread = held
    chances: Floats = np.minimum(np.cumsum(spread[::-1])[::-1], 1.0)
    return chances
