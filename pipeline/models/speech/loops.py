"""Loops of a Whisper model: the same words over and over, which it writes where it does not understand (echo, music).

They are known by how well they compress, as Radford et al. 2022 (section 4.5) tell them from speech.
"""

from __future__ import annotations

import zlib

MOST_COMPRESSED = 2.4
"""Times that a text is longer than when it is compressed, from which on it is a loop (of the paper). Songs and lines
with words twice over have 1.3 to 2.2."""


def is_loop(text: str) -> bool:
    """Return True for a text that repeats itself more than people do.

    It has a byte for each character: UTF-8 has three for one of Hindi or Georgian, of which two are always the same.
    """
    foreign = dict.fromkeys(letter for letter in text if not letter.isascii())
    others = {letter: 128 + at % 128 for at, letter in enumerate(foreign)}
    data = bytes(others.get(letter, ord(letter) & 127) for letter in text)
    return len(data) > MOST_COMPRESSED * len(zlib.compress(data))
