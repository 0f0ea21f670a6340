"""Loops of a Whisper model: the same words over and over, which it writes where it does not understand (echo, music).

They are known by how well they compress, as Radford et al. 2022 (arXiv 2212.04356, section 4.5) tell them from speech.
"""

from __future__ import annotations

import zlib

MOST_COMPRESSED = 2.4
"""Times that a text is longer than when it is compressed, from which on it is a loop (of the paper). Songs and lines
with words twice over have 1.3 to 2.2."""


def is_loop(text: str) -> bool:
    """True for a text that repeats itself more than people do."""
    data = _one_byte_each(text)
    return len(data) > MOST_COMPRESSED * len(zlib.compress(data))


def _one_byte_each(text: str) -> bytes:
    """A byte for each character: UTF-8 has three for one of Hindi or Georgian, of which two are always the same."""
    others = {letter: 128 + at % 128 for at, letter in enumerate(dict.fromkeys(filter(_is_foreign, text)))}
    return bytes(others.get(letter, ord(letter) & 127) for letter in text)


def _is_foreign(letter: str) -> bool:
    return not letter.isascii()
