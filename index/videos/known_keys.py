"""Rows written by key into a table that one process alone writes, without a look at the table.

To find the rows that an upsert replaces, Lance joins with all rows that no index covers yet, and reads again what is
new of the index: beside a run that writes 500 rows a commit that took twice as long after 100,000 rows, half of the
commit. But nearly all keys of a run are new, and it can know that: it remembers all that were there, as 64-bit
hashes, and those that it wrote. Rows of new keys are appended; the few others, among them one key in 2**64 that only
looks known, are upserted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinodex.index.store.database import Tables

MERGE_FROM = 100_000
"""Hashes that wait to be sorted in among the others."""


class KnownKeys:
    """Keys of a table, in 8 bytes each. Nobody else may write new ones as long as this is in use."""

    def __init__(self, tables: Tables, name: str, key: str) -> None:
        self._tables, self._name, self._key = tables, name, key
        parts = [_hashes(batch.column(key).to_pylist()) for batch in tables.batches(name, None, [key])]
        self._sorted = np.unique(np.concatenate(parts)) if parts else np.empty(0, np.int64)
        self._new: set[int] = set()

    def write(self, rows: Sequence[dict[str, Any]]) -> None:
        """Write rows with keys that differ, each in place of the one with the same key."""
        hashes = _hashes([row[self._key] for row in rows])
        held = self._hold(hashes)
        self._tables.append(self._name, [row for row, is_held in zip(rows, held, strict=True) if not is_held])
        self._tables.upsert(self._name, [self._key], [row for row, is_held in zip(rows, held, strict=True) if is_held])
        self._add(hashes)

    def add(self, keys: Sequence[str]) -> None:
        """Take note of keys that are written otherwise."""
        self._add(_hashes(keys))

    def hold(self, keys: Sequence[str]) -> list[bool]:
        """Say for each key if there was a row of it or one was written; of a new one that is wrong once in 2**64."""
        return self._hold(_hashes(keys))

    def _hold(self, hashes: NDArray[np.int64]) -> list[bool]:
        known = self._is_sorted_in(hashes).tolist()
        return [found or each in self._new for found, each in zip(known, hashes.tolist(), strict=True)]

    def _is_sorted_in(self, hashes: NDArray[np.int64]) -> NDArray[np.bool_]:
        if not len(self._sorted):
            return np.zeros(len(hashes), np.bool_)
        positions = np.minimum(np.searchsorted(self._sorted, hashes), len(self._sorted) - 1)
        return np.asarray(self._sorted[positions] == hashes)

    def _add(self, hashes: NDArray[np.int64]) -> None:
        self._new.update(hashes.tolist())
        if len(self._new) >= MERGE_FROM:
            new = np.sort(np.fromiter(self._new, np.int64, len(self._new)))
            new = new[~self._is_sorted_in(new)]
            self._sorted = np.insert(self._sorted, np.searchsorted(self._sorted, new), new)
            self._new = set()


def _hashes(keys: Iterable[str]) -> NDArray[np.int64]:
    """Hash keys as this process does; another one hashes them otherwise."""
    return np.array([hash(key) for key in keys], np.int64)
