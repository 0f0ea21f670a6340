"""Vocabulary of a tokenizer in a file, of which a text takes only the words that it can be made of.

Reading the 256,000 words and half a million merges of SigLIP 2 by the package tokenizers takes 0.5 s and 180 MB, to
write a line of text as ten numbers. A tokenizer uses only words that are parts of its text. So they are looked up
here, by a hash of every part, and the tokenizer is made of what is found: the same numbers, in milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinodex.index.spaces.arrays import ArrayFile, write_arrays

HASH_BASE = 0x9E3779B97F4A7C15
"""Odd, so that no power of it is 0 modulo 2^64: digits of the golden ratio."""
MODULUS = 1 << 64


@dataclass(frozen=True, slots=True)
class Word:
    """A word of the vocabulary."""

    text: str
    number: int
    score: float = 0.0
    """Logarithm of its probability in a unigram model."""
    merges: tuple[tuple[int, str, str], ...] = ()
    """Rank, left and right half of the merges that make it, in a model of byte pairs."""


def write_vocabulary(path: Path, words: Iterable[Word]) -> None:
    """Write the words of a tokenizer to a file; raises ValueError if two words have one hash."""
    given = list(words)
    hashes = _hashes_of([word.text for word in given])
    order = np.argsort(hashes)
    hashes, ordered = hashes[order], [given[place] for place in order.tolist()]
    if (hashes[1:] == hashes[:-1]).any():
        raise ValueError("two words of the vocabulary have the same hash")
    texts = [word.text.encode() for word in ordered]
    merges = [merge for word in ordered for merge in word.merges]
    has_scores = any(word.score for word in ordered)
    arrays: dict[str, NDArray[Any]] = {
        "hashes": hashes,
        "numbers": np.array([word.number for word in ordered], np.uint32),
        "scores": np.array([word.score for word in ordered] if has_scores else [], np.float64),
        "text_ends": np.cumsum([len(text) for text in texts], dtype=np.uint32),
        "texts": np.frombuffer(b"".join(texts), np.uint8),
        "longest": np.array([max((len(word.text) for word in ordered), default=0)], np.uint32),
        "merge_ends": np.cumsum([len(word.merges) for word in ordered] if merges else [], dtype=np.uint32),
        "merge_ranks": np.array([rank for rank, _, _ in merges], np.uint32),
        "merge_places": np.array([len(left) for _, left, _ in merges], np.uint16),
    }
    write_arrays(path, arrays)


class Vocabulary:
    """The words of a tokenizer in a file, which is mapped into memory: only pages that are looked at are read."""

    def __init__(self, path: Path) -> None:
        """Map the file; raises BadCheckpoint if it is damaged."""
        file = ArrayFile(path)
        self._hashes, self._numbers, self._scores = file.map("hashes"), file.map("numbers"), file.map("scores")
        self._text_ends, self._texts = file.map("text_ends"), file.map("texts")
        self._merge_ends, self._ranks = file.map("merge_ends"), file.map("merge_ranks")
        self._places = file.map("merge_places")
        self._longest = int(file.map("longest")[0])

    def find(self, texts: Iterable[str]) -> list[Word]:
        """Find words by their whole texts, as far as there are such words."""
        rows = self._rows(np.array([text_hash(text) for text in texts], np.uint64))
        return [self._word(row) for row in rows]

    def words_in(self, text: str, prefix: str = "", suffix: str = "") -> list[Word]:
        """Find the words that are parts of a text: as they are, after `prefix`, and before `suffix`.

        Both are marks of a tokenizer. A word with the hash of another may come too, which does no harm.
        """
        rows: set[int] = set()
        for length, hashes in self._hashes_of_parts(text):
            rows.update(self._rows(hashes))
            if prefix:
                rows.update(self._rows(hashes + np.uint64(_joined(text_hash(prefix), length, 0))))
            if suffix:
                power = np.uint64(pow(HASH_BASE, len(suffix), MODULUS))
                rows.update(self._rows(hashes * power + np.uint64(text_hash(suffix))))
        return [self._word(row) for row in sorted(rows)]

    def _hashes_of_parts(self, text: str) -> Iterable[tuple[int, NDArray[np.uint64]]]:
        """Hash the parts of a text, by length: the hash up to the end of each, less that up to its start, shifted."""
        totals = [0]
        for letter in text:
            totals.append(_joined(totals[-1], 1, ord(letter) + 1))
        sums = np.array(totals, np.uint64)
        for length in range(1, min(self._longest, len(text)) + 1):
            yield length, sums[length:] - sums[:-length] * np.uint64(pow(HASH_BASE, length, MODULUS))

    def _rows(self, hashes: NDArray[np.uint64]) -> list[int]:
        places = np.minimum(np.searchsorted(self._hashes, hashes), len(self._hashes) - 1)
        rows: list[int] = places[self._hashes[places] == hashes].tolist()
        return rows

    def _word(self, row: int) -> Word:
        start, end = _bounds(self._text_ends, row)
        text = self._texts[start:end].tobytes().decode()
        first, last = _bounds(self._merge_ends, row) if len(self._merge_ends) else (0, 0)
        places, ranks = self._places[first:last].tolist(), self._ranks[first:last].tolist()
        merges = tuple((rank, text[:place], text[place:]) for rank, place in zip(ranks, places, strict=True))
        score = float(self._scores[row]) if len(self._scores) else 0.0
        return Word(text, int(self._numbers[row]), score, merges)


def words_of(model: Mapping[str, Any]) -> list[Word]:
    """List the words of a model of the package tokenizers, as its file describes it."""
    if model["type"] == "Unigram":
        return [Word(text, number, score) for number, (text, score) in enumerate(model["vocab"])]
    merges: dict[str, list[tuple[int, str, str]]] = {}
    for rank, merge in enumerate(model.get("merges", ())):
        left, right = merge.split(" ") if isinstance(merge, str) else merge
        merges.setdefault(left + right, []).append((rank, left, right))
    return [Word(text, number, merges=tuple(merges.get(text, ()))) for text, number in model["vocab"].items()]


def text_hash(text: str) -> int:
    """Hash a text as a polynomial of its code points, modulo 2^64."""
    total = 0
    for letter in text:
        total = (total * HASH_BASE + ord(letter) + 1) % MODULUS
    return total


def _hashes_of(texts: Sequence[str]) -> NDArray[np.uint64]:
    """Hash many texts as `text_hash` does, a letter of all of them at a time."""
    lengths = np.array([len(text) for text in texts], np.int64)
    letters = np.frombuffer("".join(texts).encode("utf-32-le"), np.uint32).astype(np.uint64)
    starts, totals = np.cumsum(lengths) - lengths, np.zeros(len(texts), np.uint64)
    for place in range(int(lengths.max(initial=0))):
        longer = np.flatnonzero(lengths > place)
        totals[longer] = totals[longer] * np.uint64(HASH_BASE) + letters[starts[longer] + place] + np.uint64(1)
    return totals


def _joined(left: int, right_length: int, right_hash: int) -> int:
    return (left * pow(HASH_BASE, right_length, MODULUS) + right_hash) % MODULUS


def _bounds(ends: NDArray[Any], row: int) -> tuple[int, int]:
    return int(ends[row - 1]) if row else 0, int(ends[row])
