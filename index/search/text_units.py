"""Words and characters of texts in any script, by the rules of Unicode (annex 29, which the library `regex` knows).

Vowel signs and other marks belong to their words. Scripts without spaces between words (Chinese, Japanese, Thai and
the like) have no words here but pairs of characters: those need no dictionary, and two texts that share a word share
its pairs.
"""

from __future__ import annotations

import regex

UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\u30fc\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tibetan}"
"""The letters of scripts without spaces, as a set of a regular expression."""
NEAR_SPACE = 40
"""Characters by which a text may be cut shorter to end with a whole word."""
_RUN = regex.compile(rf"((?:[{UNSPACED}]\p{{M}}*)+)|((?:[^\W_{UNSPACED}])+)")
_CHARACTER = regex.compile(r"\X")


def words(text: str) -> list[str]:
    """The words of a text in order, as they are written; of scripts without spaces the pairs of characters."""
    found: list[str] = []
    for unspaced, word in _RUN.findall(text):
        each = _CHARACTER.findall(unspaced)
        found += ["".join(each[at : at + 2]) for at in range(max(1, len(each) - 1))] if each else [word]
    return found


def beginning(text: str, most: int) -> str:
    """The beginning of a text, `most` code points at most: whole words where a space is near, else whole characters."""
    if len(text) <= most:
        return text
    space = text.rfind(" ", max(0, most - NEAR_SPACE), most + 1)
    return text[: space if space >= 0 else max(_borders(text, most), default=0)].rstrip()


def end(text: str, most: int) -> str:
    """The end of a text, `most` code points at most: whole words where a space is near, else whole characters."""
    if len(text) <= most:
        return text
    first = len(text) - most
    space = text.find(" ", first - 1, first + NEAR_SPACE)
    if space >= 0:
        return text[space + 1 :].lstrip()
    return text[
        next((each.start() for each in _CHARACTER.finditer(text) if each.start() >= first), len(text)) :
    ].lstrip()


def _borders(text: str, most: int) -> list[int]:
    """The ends of the characters of a text's beginning of `most` code points."""
    return [
        each.end() for each in _CHARACTER.finditer(text, 0, min(len(text), most + NEAR_SPACE)) if each.end() <= most
    ]
