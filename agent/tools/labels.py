"""Labels that a library or a detector knows, matched with the words in which a model asks for a thing.

A word means a label, from the surest sign to the least sure: if it is the label, in singular or plural; if it ends in
it ("red car" is a car); if it is a word for people, who are one label to most detectors; else by the text vectors of
the library's space. No WordNet could be had as a light package, so vectors take its place: the cosine of the asked
words with the nearest label has to lie `MIN_DEVIATION` standard deviations above their cosines with `EVERYDAY`, words
that have nothing to do with each other. In the text tower of `photo` (all-MiniLM-L6-v2; ../shared/MODELS.md), with
the 80 labels of COCO, 30 of 36 synonyms got their label in this way ("fridge", "kitten") and the others none
("lorry", "rucksack"); of 49 things that COCO has no label for one got one ("glove": "baseball glove"). Raw cosines
would not do: in some spaces all words lie close to each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kinodex.agent.videos.environment import Environment

MIN_DEVIATION = 5.2
"""The deviation from unrelated words that makes a word mean a label."""
PERSON = ("person", "people", "human", "pedestrian")
_WORDS_FOR_PEOPLE = (
    "man woman boy girl child kid baby adult lady guy gentleman human person people pedestrian somebody someone figure "
    "player worker driver rider cyclist swimmer dancer singer actor teacher student doctor nurse chef cook waiter "
    "soldier policeman athlete runner guest customer passenger crowd"
)
PEOPLE = frozenset(_WORDS_FOR_PEOPLE.split())
_UNRELATED = (
    "cloud stone music window garden paper shoe river letter machine hat fire bridge tree coin mirror engine leaf rope "
    "lamp cheese doctor mountain island needle brick pillow hammer flag insect statue medal candle ladder soap wire "
    "bread fish door"
)
EVERYDAY = tuple(_UNRELATED.split())
IRREGULAR = {"men": "man", "women": "woman", "children": "child", "people": "person", "feet": "foot", "teeth": "tooth"}


IRREGULAR |= {"mice": "mouse", "geese": "goose", "knives": "knife", "leaves": "leaf", "shelves": "shelf"}


IRREGULAR |= {"buses": "bus", "wolves": "wolf", "loaves": "loaf", "scissors": "scissors", "skis": "skis"}


ARTICLES = ("a", "an", "the", "any", "some", "one")


@dataclass(frozen=True, slots=True)
class Match:
    """A known label, and True if it is `loose`: it may be another thing than was asked for."""

    label: str
    loose: bool


def match_label(environment: Environment, asked: str, known: Sequence[str]) -> Match | None:
    """Find the one of some known labels that a text means; None if it means none of them."""
    words = _singular(asked)
    by_words = {_singular(label): label for label in reversed(known)}
    if words in by_words:
        return Match(by_words[words], loose=False)
    ends = [label for single, label in by_words.items() if " ".join(words).endswith(f" {' '.join(single)}")]
    if ends:
        return Match(max(ends, key=len), loose=True)
    if words[-1:] and words[-1] in PEOPLE:
        people = next((by_words[(each,)] for each in PERSON if (each,) in by_words), None)
        if people is not None:
            return Match(people, loose=True)
    return _nearest(environment, " ".join(words), known) if environment.has_vectors else None


def _nearest(environment: Environment, asked: str, known: Sequence[str]) -> Match | None:
    """Return the label whose text vector stands out from those of unrelated words."""
    if not known or not asked:
        return None
    best = known[int(np.argmax(_deviations(environment, asked, known)))]
    shared = set(asked.split()) & set(best.split())
    # "red kite" is like "red boat" for the sake of "red": what the two do not share has to be alike.
    thing, label = (" ".join(word for word in text.split() if word not in shared) for text in (asked, best))
    if not thing or not label:
        thing, label = asked, best
    return Match(best, loose=True) if _deviations(environment, thing, [label])[0] >= MIN_DEVIATION else None


def _deviations(environment: Environment, text: str, labels: Sequence[str]) -> NDArray[np.float32]:
    """By how many standard deviations each label is more like a text than unrelated words are."""
    source = environment.source
    source.embed_texts([text, *labels, *EVERYDAY])  # all at once, not one by one
    vector = source.embed_texts([text])[0]
    if not source.knows(text):
        return np.zeros(len(labels), np.float32)
    unrelated = source.embed_texts(EVERYDAY) @ vector
    deviations: NDArray[np.float32] = (source.embed_texts(labels) @ vector - unrelated.mean()) / unrelated.std()
    return deviations


def _singular(text: str) -> tuple[str, ...]:
    """Return the words of a label in small letters, without an article, the last one in the singular."""
    words = [word for word in text.casefold().split() if word not in ARTICLES]
    return (*words[:-1], _single(words[-1])) if words else ()


def _single(word: str) -> str:
    if word in IRREGULAR:
        return IRREGULAR[word]
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    if word.endswith(("ches", "shes", "sses", "xes", "zes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) and len(word) > 3 else word
