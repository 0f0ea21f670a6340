"""Parts of texts in any script: characters as people count them (annex 29 of Unicode, which `regex` knows)."""

from __future__ import annotations

import unicodedata

import regex

NEAR_SPACE = 40
"""Characters by which a text may be cut shorter to end with a whole word."""
_CHARACTER = regex.compile(r"\X")


def composed(name: str) -> str:
    """Return a name as it is compared.

    A letter and its accent are one character, which macOS writes as two in file names.
    """
    return unicodedata.normalize("NFC", name)


def beginning(text: str, most: int) -> str:
    """Return the beginning of a text, `most` code points at most.

    It ends after a whole word where a space is near, else after a whole character.
    """
    if len(text) <= most:
        return text
    space = text.rfind(" ", max(0, most - NEAR_SPACE), most + 1)
    ends = (each.end() for each in _CHARACTER.finditer(text, 0, min(len(text), most + NEAR_SPACE)))
    return text[: space if space >= 0 else max((each for each in ends if each <= most), default=0)].rstrip()


def end(text: str, most: int) -> str:
    """Return the end of a text, `most` code points at most.

    It begins with a whole word where a space is near, else with a whole character.
    """
    if len(text) <= most:
        return text
    first = len(text) - most
    space = text.find(" ", first - 1, first + NEAR_SPACE)
    if space >= 0:
        return text[space + 1 :].lstrip()
    starts = (each.start() for each in _CHARACTER.finditer(text))
    return text[next((each for each in starts if each >= first), len(text)) :].lstrip()
