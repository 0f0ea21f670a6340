"""Comparison of options with lines by their words.

The score of an option is the share of its words, and the question's, that a line holds, on average over the lines.
Words that few lines hold weigh more (inverse document frequency, Sparck Jones 1972), and the forms of a word count as
one.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from kinodex.agent.protocol.notes import Note
from kinodex.agent.protocol.question import Question
from kinodex.agent.similarity.statements import statements
from kinodex.agent.videos.scale import Floats

WORD_FORMS = ("ing", "ied", "ies", "ed", "es", "s")
LEAST_STEM = 3
STATED = 0.75
"""The share of a statement's words that a line must hold, with all of the option's own, to state it."""

# fmt: off
SMALL = {
    "a", "an", "and", "are", "at", "by", "for", "from", "has", "have", "in", "is", "it", "of", "on", "or", "over",
    "that", "the", "there", "this", "to", "with",
}
# fmt: on


def shares(texts: Sequence[str], notes: Sequence[Note]) -> Floats:
    """Return the share [n, t] of the words of each text that each note holds, rare words counting more.

    A note that its reader was unsure of counts by its confidence.
    """
    held = [stems(note.text) for note in notes]
    counts = Counter(word for words in held for word in words)

    def weight(words: frozenset[str]) -> float:  # fsum: the same in any order of the words
        return math.fsum(math.log(1 + len(held) / max(1, counts[word])) for word in words)

    sure = [1.0 if note.confidence is None else note.confidence for note in notes]
    asked = [stems(text) for text in texts]
    rows = [
        [by * weight(own & words) / weight(own) if own else 0.0 for own in asked]
        for words, by in zip(held, sure, strict=True)
    ]
    return np.array(rows, float).reshape(len(notes), len(texts))


def stated_option(question: Question, notes: Sequence[Note]) -> tuple[int, int] | None:
    """Return the index of the one option that a note states, and of that note; None if none or several are stated."""
    stated: dict[int, int] = {}
    for option, (own, whole) in enumerate(zip(question.options, statements(question), strict=True)):
        words, wanted = stems(own), stems(whole)
        for at, note in enumerate(notes):
            held = stems(note.text)
            if words and words <= held and len(wanted & held) >= STATED * len(wanted):
                stated.setdefault(option, at)
    return next(iter(stated.items())) if len(stated) == 1 else None


@lru_cache(maxsize=4096)
def stems(text: str) -> frozenset[str]:
    """Return the words of a text without endings and without small words."""
    return frozenset(_stem(word) for word in re.findall(r"[^\W_]+", text.casefold()) if word not in SMALL)


def _stem(word: str) -> str:
    ending = next((each for each in WORD_FORMS if word.endswith(each) and len(word) - len(each) >= LEAST_STEM), "")
    stem = word.removesuffix("" if word.endswith("ss") else ending)
    if len(stem) > LEAST_STEM and stem[-1] in (stem[-2], "e"):
        stem = stem[:-1]
    return stem
