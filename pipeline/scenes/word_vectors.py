"""Words of a film's parts as vectors, without a model: how much two parts speak of the same things.

Words are weighed by how few parts hold them (tf-idf; Salton and Buckley 1988), which leaves the small words of any
language without weight and without a list of them, and hashed into a fixed number of dimensions with signs
(Weinberger et al. 2009, "Feature hashing for large scale multitask learning"). Parts that share words have a change
of topic between them where they stop sharing, as in TextTiling (Hearst 1997).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from zlib import crc32

import numpy as np
import regex
from numpy.typing import NDArray

DIMENSIONS = 256
WORD = regex.compile(r"\w+")
LEAST_LETTERS = 3
"""Of words in an alphabet; a letter of a script without spaces counts as a word."""
NO_SPACES = regex.compile(
    r"[\p{Han}\p{Hiragana}\p{Katakana}\u30fc\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tibetan}]\p{M}*"
)


def word_vectors(texts: Sequence[str]) -> NDArray[np.float64]:
    """Make unit vectors [n, 256] of texts; zeros for a text without a word that tells it from the others."""
    counts = [Counter(_words(text)) for text in texts]
    held = Counter(word for each in counts for word in each)
    worded = sum(map(bool, counts))
    vectors = np.zeros((len(texts), DIMENSIONS))
    for vector, words in zip(vectors, counts, strict=True):
        for word, count in words.items():
            code = crc32(word.encode())
            sign = 1.0 if code & 1 else -1.0
            vector[(code >> 1) % DIMENSIONS] += sign * (1.0 + np.log(count)) * np.log(worded / held[word])
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: NDArray[np.float64] = np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0)
    return unit


def _words(text: str) -> list[str]:
    words = WORD.findall(text.casefold())
    plain = [word for word in words if len(word) >= LEAST_LETTERS and not NO_SPACES.search(word)]
    return plain + [letter for word in words for letter in NO_SPACES.findall(word)]
