"""Vectors of queries, kept so that nobody waits for the same words twice."""

from __future__ import annotations

import hashlib
import unicodedata
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]
Q = TypeVar("Q", str, bytes)
MOST_KEPT = 1024
"""Vectors kept, a few kilobytes each: who types and deletes comes back to most."""


class QueryVectors:
    """The vectors of queries by the key of their embedder and their words, or the bytes of their picture.

    Any thread may use it. Words are the same whatever space lies between them, and however their accents are written.
    """

    def __init__(self, most: int = MOST_KEPT) -> None:
        self._most = most
        self._kept: OrderedDict[tuple[str, str | bytes], Floats] = OrderedDict()
        self._lock = Lock()

    def get(self, embedder: str, query: str | bytes) -> Floats | None:
        """Return the vector of a query; None if it is not kept."""
        key = _key(embedder, query)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def keep(self, embedder: str, query: str | bytes, vector: Floats) -> Floats:
        """Keep the vector of a query in the place of the one that was used longest ago, and return it."""
        kept = np.array(vector)
        kept.flags.writeable = False  # everybody gets the same
        with self._lock:
            self._kept[_key(embedder, query)] = kept
            if len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return kept

    def embedded(self, embedder: str, query: Q, embed: Callable[[Q], Floats]) -> Floats:
        """Return the vector of a query, embedded now if it is not kept."""
        plain = query if isinstance(query, bytes) else plain_query(query)
        held = self.get(embedder, plain)
        return self.keep(embedder, plain, embed(plain)) if held is None else held


def embedder_key(uri: str, digest: str) -> str:
    """Return the key of the towers of a space in a library.

    Libraries carry their own towers, and one may lie about the space of its tower: only what kinodex brings is shared.
    """
    from kinodex.index.store.carried_towers import shipped_tower

    return digest if shipped_tower(digest, "text") else f"{digest} {uri}"


def plain_query(words: str) -> str:
    """Return the words with single spaces and composed accents."""
    return unicodedata.normalize("NFC", " ".join(words.split()))


def _key(embedder: str, query: str | bytes) -> tuple[str, str | bytes]:
    return embedder, hashlib.sha256(query).digest() if isinstance(query, bytes) else plain_query(query)
