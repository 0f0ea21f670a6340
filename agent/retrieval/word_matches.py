"""Matches of a query's words with lines, each as rare as it is by chance.

If the words of a query fell into lines independently, each as often as it does, a line would hold a given set of them
with the product of their rates: its surprise is the sum of the words' log rarities, which is also what BM25 adds up for
a line of usual length. The chance of a line is the probability that such a line holds words at least as surprising.
It grows with the number of words that a query has, so that a long question is not found in every line.

A lone common word is nothing: a line counts only if it is less likely than not, and if fewer lines would match as well
by chance than there are places (`places`), as for the best frames of a video, of which so many are taken whatever they
show.

No stemming, and words are cut as the library's search cuts them, apart from scripts without spaces, of which pairs of
characters are words here. Repeated words count once, and a long line is no different from a short one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np

from agent.retrieval.calibration import NO_MATCH, Floats, deviation_of_chance
from index.search.fusion import plain_words

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
