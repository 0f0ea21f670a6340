"""Notes read by word matching: how much of a statement stands in a text, whatever synonyms it uses."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from tests.sketch.vocabulary import COLOURS, NIGHT, PLACE_NOUNS, PLACES, THINGS, plural
from tests.world.sketch.scenes import NUMBERS

FILLER = re.compile(r"^(?:an?|and|any|are|as|at|by|for|from|in|is|it|its|of|on|or|over|that|the|there|this|to|with)$")
THING_WEIGHT = 2.0
PERHAPS = 0.85
"""What a clause counts for that says "perhaps"."""


@cache
def _canonical() -> tuple[re.Pattern[str], dict[str, str]]:
    """One pattern for all phrases of the sketch world, longest first, and what each stands for."""
    names: dict[str, str] = {}
    for place, said in PLACES.items():
        names |= dict.fromkeys((*said, *PLACE_NOUNS[place], f"in the {place}"), f"@{place}")
    names |= dict.fromkeys((*NIGHT, "night"), "@night")
    for colour, others in COLOURS.items():
        names |= dict.fromkeys((colour, *others), colour)
    names |= {word: word for word in NUMBERS} | {str(number): word for number, word in enumerate(NUMBERS)}
    for thing, others in THINGS.items():
        for noun in (thing, *others):
            names |= {noun: f"#{thing}", plural(noun): f"#{thing}"}
    phrases = sorted(names, key=len, reverse=True)
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, phrases))})\b"), names


@cache
def meaning(text: str) -> frozenset[str]:
    """The words of a text that say something: "#thing", "@place", colours, numbers, and others as they stand."""
    pattern, names = _canonical()
    folded = text.casefold()
    known = {names[found] for found in pattern.findall(folded)}
    rest = re.findall(r"[a-z][a-z'-]+", pattern.sub(" ", folded))
    return frozenset(known | {word for word in rest if not FILLER.match(word)})


def strengths(texts: Sequence[str], notes: Sequence[str], sure: Sequence[float]) -> NDArray[np.float64]:
    """The share of each text's words [t] that stand in each note [n], less where the note is unsure: [n, t]."""
    shares = np.array([[_best_share(text, note) for text in texts] for note in notes])
    trust = 0.8 + 0.2 * np.asarray(sure, dtype=np.float64)
    return shares.reshape(len(notes), len(texts)) * trust[:, None]


def _best_share(text: str, note: str) -> float:
    """Of the note's clauses, each by itself: a red boat and a blue hat are no blue boat."""
    clauses = re.split(r"[;.]|Relevant:", note)
    return max(_share(meaning(text), meaning(each)) * (PERHAPS if "perhaps" in each else 1) for each in clauses)


def _share(wanted: frozenset[str], told: frozenset[str]) -> float:
    total = sum(map(_weight, wanted))
    return sum(map(_weight, wanted & told)) / total if total else 0.0


def _weight(word: str) -> float:
    return THING_WEIGHT if word.startswith("#") else 1.0
