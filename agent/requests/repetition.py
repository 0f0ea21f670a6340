"""Replies without content: the same words over and over, or the words of the request. Small models write both.

Such a text fits the schema of a description. Taken for one, it would be stored, searched and cited.
"""

from __future__ import annotations

from collections.abc import Sequence

from kinodex.agent.errors import InvalidReply
from kinodex.index.terms import query_terms

LEAST_WORDS = 16
"""A shorter text is not looked at for loops: a song may well say "row, row, row your boat"."""
LEAST_NEW = 0.5
"""Share of runs of `LOOPED` words that are new in a text that says something; in loops of small models it is 0.03 to
0.3 (SmolLM2-135M), in sentences above 0.65."""
LOOPED = 4
ECHOED = 5
"""Words in a row that a description and its instructions do not share by chance."""


def check_not_looping(text: str) -> None:
    """Raise `InvalidReply` for a text that repeats itself more than it says anything."""
    words = _words(text)
    runs = _runs(words, LOOPED)
    if len(words) >= LEAST_WORDS and len(set(runs)) < LEAST_NEW * len(runs):
        raise InvalidReply("it says the same words over and over; say each thing once")


def check_not_echoed(text: str, instructions: str, words: int = ECHOED) -> None:
    """Raise `InvalidReply` for a text that has this many words in a row from the instructions for it."""
    if not set(_runs(_words(text), words)).isdisjoint(_runs(_words(instructions), words)):
        raise InvalidReply("it repeats the instructions; say what is known of the part instead")


def _words(text: str) -> list[str]:
    return query_terms(text)


def _runs(words: Sequence[str], length: int) -> list[tuple[str, ...]]:
    return [tuple(words[at : at + length]) for at in range(len(words) - length + 1)]
