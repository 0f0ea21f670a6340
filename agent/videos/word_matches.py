"""Matches of a query's words with lines, each as rare as it is by chance.

If the words of a query fell into lines independently, each as often as it does, a line would hold a given set of them
with the product of their rates: its surprise is the sum of the words' log rarities, which is also what BM25 adds up
for a line of usual length. The chance of a line is the probability that such a line holds words at least as
surprising. It grows with the number of words that a query has, so that a long question is not found in every line.

A lone common word is nothing: a line counts only if it is less likely than not, and if fewer lines would match as
well by chance than there are places (`places`), as for the best frames of a video, of which this many are taken
whatever they show.

No stemming, and words are cut as the library's search cuts them (`kinodex.index.terms`). Repeated words count once,
and a long line is no different from a short one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np

from kinodex.agent.videos.scale import LIKELY, NO_MATCH, Floats, deviation_of_chance
from kinodex.index.terms import line_terms, query_terms

STEP = 0.05
"""Surprises, in nats, are rounded to multiples of this."""
REMEMBERED_LINES = 65_536


@lru_cache(REMEMBERED_LINES)
def words_of(text: str) -> frozenset[str]:
    """Return the different terms by which a search finds a line."""
    return frozenset(line_terms(text))


def word_deviations(query: str, lines: Sequence[str], known: Sequence[str], places: int) -> Floats:
    """Deviations [n] by which lines match a query's words; `NO_MATCH` for those that share none that tell.

    Rates of words are those of the lines `known`, among which `lines` are.
    """
    query_words = frozenset(query_terms(query))
    counts = Counter(word for line in known for word in query_words & words_of(line))
    rates = {word: (count + 0.5) / (len(known) + 1) for word, count in counts.items()}
    surprise = {word: round(-math.log(rate) / STEP) for word, rate in rates.items()}
    tail = _chances(surprise.values())
    found = np.full(len(lines), NO_MATCH)
    for at, line in enumerate(lines):
        chance = tail[sum(surprise.get(word, 0) for word in query_words & words_of(line))]
        if chance < LIKELY and chance * len(known) < places:
            found[at] = deviation_of_chance(chance)
    return found


def _chances(surprises: Iterable[int]) -> Floats:
    spread = np.ones(1)
    for steps in surprises:
        held, rate = np.zeros(len(spread) + steps), math.exp(-STEP * steps)
        held[steps:] = spread * rate
        held[: len(spread)] += spread * (1.0 - rate)
        spread = held
    chances: Floats = np.minimum(np.cumsum(spread[::-1])[::-1], 1.0)
    return chances
