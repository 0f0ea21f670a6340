"""Rows written since a run began, counted by video: each fragment is read once, not the table for each commit.

A table of Lance consists of fragments. An append adds some, and their numbers only grow; a deletion marks rows of
fragments as deleted; a compaction or an update puts rows into new fragments. So a fragment whose number is new is
read, one with more deleted rows than before is read again, and one that is gone no longer counts: what is held is
then what the newest state of the table has in fragments that were written since the beginning. Rows written before it
are not counted. So it has to begin before the leftovers of other runs are swept out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kinodex.index.store.database import Tables
from kinodex.index.store.filters import all_of
from kinodex.index.videos.row_counts import Counts, ingested_only, key_columns

if TYPE_CHECKING:
    from lance import LanceDataset, LanceFragment

JOINED_ROWS = 20_000
"""A fragment of more rows may come of a compaction, and hold rows of videos that were complete long ago."""
FRAGMENT_BITS = 32
"""A row's address: its fragment's number, then its place there."""
Numbers = dict[str, NDArray[np.int32]]
"""Numbers of the rows of one fragment, by video."""


@dataclass(slots=True)
class _Fragment:
    deletions: int
    videos: Numbers


class NewRows:
    """New rows of one table, but for those of videos that were forgotten or, says `are_complete`, complete."""

    def __init__(self, tables: Tables, name: str, are_complete: Callable[[Sequence[str]], Sequence[bool]]) -> None:
        self._tables = tables
        self._name = name
        self._are_complete = are_complete
        self._next = _next_number(tables[name])
        self._fragments: dict[int, _Fragment] = {}

    def counts(self, video_ids: Sequence[str]) -> Counts:
        """Count the new rows of these videos in the newest state of the table."""
        self._look()
        held = {video_id: self._numbers(video_id) for video_id in video_ids}
        rows = {video_id: len(numbers) for video_id, numbers in held.items()}
        if len(key_columns(self._name)) == 1:
            return Counts(rows, rows)
        return Counts(rows, {video_id: len(np.unique(numbers)) for video_id, numbers in held.items()})

    def forget(self, video_ids: Iterable[str]) -> None:
        """Drop what is held of videos that are complete."""
        gone = set(video_ids)
        for number, fragment in list(self._fragments.items()):
            for video_id in gone & fragment.videos.keys():
                del fragment.videos[video_id]
            if not fragment.videos:
                del self._fragments[number]

    def _numbers(self, video_id: str) -> NDArray[np.int32]:
        found = [fragment.videos[video_id] for fragment in self._fragments.values() if video_id in fragment.videos]
        return np.concatenate(found) if found else np.empty(0, np.int32)

    def _look(self) -> None:
        """Bring what is held up to the newest state of the table."""
        table = self._tables[self._name]
        numbers = set(table.fragment_ids())  # thousands: only those that are new or held are looked at
        held_still = {number: held for number, held in self._fragments.items() if number in numbers}
        held_now = {number: _fragment(table, number) for number in held_still}
        changed = [held_now[n] for n, held in held_still.items() if held_now[n].num_deletions != held.deletions]
        new = [_fragment(table, number) for number in sorted(numbers) if number >= self._next]
        found = self._read(table, [*new, *changed])
        self._fragments = held_still
        for fragment in changed:  # deleting adds no row: what was forgotten of it stays so
            held = self._fragments.pop(fragment.fragment_id)
            rows_of = found.get(fragment.fragment_id, {})
            self._hold(fragment, {id_: rows for id_, rows in rows_of.items() if id_ in held.videos})
        for fragment in new:
            rows_of = found.get(fragment.fragment_id, {})
            self._hold(fragment, self._incomplete(rows_of) if fragment.physical_rows > JOINED_ROWS else rows_of)
        self._next = max(self._next, _next_number(table))  # that of a fragment which is gone is not used again

    def _hold(self, fragment: LanceFragment, videos: Numbers) -> None:
        if videos:
            self._fragments[fragment.fragment_id] = _Fragment(fragment.num_deletions, videos)

    def _read(self, table: LanceDataset, fragments: Sequence[LanceFragment]) -> dict[int, Numbers]:
        """Read the numbers of the rows of these fragments, by fragment and video."""
        if not fragments:
            return {}
        where = all_of(ingested_only(self._name))
        columns = key_columns(self._name)
        sql = None if where is None else where.sql
        scanner = table.scanner(columns, sql, fragments=list(fragments), with_row_address=True)
        return _by_fragment(scanner.to_table(), columns)

    def _incomplete(self, videos: Numbers) -> Numbers:
        """Leave out the videos that are complete."""
        ids = list(videos)
        complete = self._are_complete(ids)
        return {id_: videos[id_].copy() for id_, is_there in zip(ids, complete, strict=True) if not is_there}


def _fragment(table: LanceDataset, number: int) -> LanceFragment:
    """Look up a fragment that the table has."""
    fragment = table.get_fragment(number)
    assert fragment is not None
    return fragment


def _next_number(table: LanceDataset) -> int:
    """Return a number above those of all fragments that the table has now."""
    return max(table.fragment_ids(), default=-1) + 1


def _by_fragment(rows: pa.Table, columns: Sequence[str]) -> dict[int, Numbers]:
    """Split rows by fragment and video. They lie in runs, as they were written."""
    if not rows.num_rows:
        return {}
    fragments = rows["_rowaddr"].to_numpy() >> np.uint64(FRAGMENT_BITS)
    ids = rows["video_id"].combine_chunks().dictionary_encode()
    places = ids.indices.to_numpy()
    names = ids.dictionary.to_pylist()
    numbers = rows[columns[1]].to_numpy() if len(columns) > 1 else np.zeros(rows.num_rows, np.int32)
    starts = np.flatnonzero((np.diff(fragments) != 0) | (np.diff(places) != 0)) + 1
    found: dict[int, Numbers] = {}
    for first, run in zip([0, *starts.tolist()], np.split(numbers, starts), strict=True):
        videos = found.setdefault(int(fragments[first]), {})
        video_id = names[places[first]]
        videos[video_id] = np.concatenate([videos[video_id], run]) if video_id in videos else run
    return found
