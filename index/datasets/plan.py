"""Plan of a reading: which rows of which fragments count, as pieces that many processes can read each on its own.

A fragment is a file of a table; its rows that are not deleted have positions from 0 on. Whether a row counts is
decided here, once: its video is complete and chosen, and it is the first of its number. So a reader of a piece has
nothing to look up, and all processes agree. One scan of ids and numbers: about 0.05 s of a core for a million rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kinodex.index.datasets.columns import KEY, Choice, choose
from kinodex.index.datasets.versions import TablesAt, Versions, checked_versions, read_versions
from kinodex.index.errors import QueryError
from kinodex.index.library import LibraryReader
from kinodex.index.store.database import ROWS_PER_BATCH
from kinodex.index.store.filters import Filter, all_of, chunked, equal, one_of
from kinodex.index.store.storage_errors import storage_errors
from kinodex.index.videos import visibility

if TYPE_CHECKING:
    from lance import LanceDataset
    from lance.fragment import LanceFragment


Pieces = NDArray[np.int64]
"""`[n, 3]`: the number of a fragment, the position of the first row, and the number of rows."""
FRAGMENT_BITS = 32
"""The upper bits of a row's address are the number of its fragment."""


@dataclass(frozen=True)
class FramePlan:
    """The frames of chosen videos at one state of a library; it can be sent to other processes."""

    uri: str
    choice: Choice
    versions: Versions
    pieces: Pieces
    schema: pa.Schema
    """Columns and types of what is read."""
    zeros_s: Mapping[str, float]
    """Presentation times of 0:00, of the videos where that is not 0."""

    @property
    def rows(self) -> int:
        """Number of frames."""
        return int(self.pieces[:, 2].sum())


def plan_frames(
    reader: LibraryReader,
    columns: Sequence[str],
    *,
    videos: Sequence[str] = (),
    space: str | None = None,
    versions: Versions | None = None,
    piece_rows: int = 256,
) -> FramePlan:
    """Plan to read the frames of these videos, or of all, in pieces of at most `piece_rows`.

    `videos` are names or globs. In another space than the library's own, videos without vectors there are left out, or
    refused if they were named. `versions` are those of an earlier plan, for the same rows again.

    Raises QueryError for columns or versions that make no sense, UnknownVideo, SpaceMismatch, and LibraryError for a
    state that was deleted.
    """
    if piece_rows < 1:
        raise QueryError(f"got pieces of {piece_rows} rows; give 1 or more")
    scope = visibility.space_scope(reader.tables, reader.visible, reader.fingerprint, space)
    choice = choose(columns, scope)
    scope = scope if choice.vectors else replace(scope, other=None)
    ids = reader.ids_named(videos)
    scope.check(ids or ())
    if ids is None and reader.condition is not None:
        ids = tuple(reader.video_ids())
    # tables that say which rows count come first
    names = ["videos", *(["additions"] if scope.other is not None else []), choice.base]
    if choice.vectors and choice.joins_vectors:
        names.append(choice.vectors)
    state = read_versions(reader.tables, names) if versions is None else checked_versions(versions, names)
    tables = TablesAt(reader.uri, state)
    with storage_errors(reader.uri):
        pieces = _pieces(tables[choice.base], _frames_promised(tables, scope, ids), ids, piece_rows)
        return FramePlan(reader.uri, choice, state, pieces, _schema(tables, choice), visibility.late_zeros_s(tables))


def _schema(tables: TablesAt, choice: Choice) -> pa.Schema:
    stored = tables[choice.base].schema
    fields = []
    for name in choice.columns:
        home = tables[choice.vectors].schema if name == "vector" and choice.vectors else stored
        fields.append(pa.field("title", pa.string(), nullable=False) if name == "title" else home.field(name))
    return pa.schema(fields)


def _frames_promised(tables: TablesAt, scope: visibility.SpaceScope, ids: Sequence[str] | None) -> dict[str, int]:
    """Read for each video that counts, by id, how many frames its row in `videos` promises."""
    counts: dict[str, int] = {}
    for where in _of_videos(ids):
        rows = tables.rows("videos", all_of([*where, equal("state", "complete")]), ["video_id", "frames"])
        counts |= dict(zip(rows["video_id"].to_pylist(), rows["frames"].to_pylist(), strict=True))
    if scope.other is None:
        return counts
    added: set[str] = set()
    for where in _of_videos(ids):
        whole = all_of([*where, equal("stage", "vectors"), equal("model", scope.other.digest)])
        added.update(tables.rows("additions", whole, ["video_id"])["video_id"].to_pylist())
    return {id_: count for id_, count in counts.items() if id_ in added}


def _of_videos(ids: Sequence[str] | None) -> list[list[Filter]]:
    """Make filters for the rows of some videos, as many as one can hold each."""
    return [[]] if ids is None else [[one_of("video_id", part)] for part in chunked(ids)]


def _pieces(table: LanceDataset, promised: Mapping[str, int], ids: Sequence[str] | None, piece_rows: int) -> Pieces:
    """Find the rows that count, in the order in which they are stored."""
    fragments = _fragments(table, ids)
    has_more = ids is not None or table.count_rows() != sum(promised.values())
    twice = _stored_twice(fragments, promised) if has_more else frozenset[str]()
    known: set[tuple[str, int]] = set()
    found = []
    for fragment in fragments:
        counts = [_counting(batch, promised, twice, known) for batch in _batches(fragment, KEY)]
        if counts:
            found.append(_cut(fragment.fragment_id, np.concatenate(counts), piece_rows))
    return np.concatenate(found) if found else np.empty((0, 3), np.int64)


def _fragments(table: LanceDataset, ids: Sequence[str] | None) -> list[LanceFragment]:
    """List the fragments that hold rows of these videos, or all."""
    if ids is None:
        return list(table.get_fragments())
    numbers: set[int] = set()
    for part in chunked(ids):
        scan = table.scanner(["video_id"], one_of("video_id", part).sql, with_row_address=True)
        for batch in scan.to_batches():
            numbers.update(np.unique(batch.column("_rowaddr").to_numpy() >> FRAGMENT_BITS).tolist())
    return [fragment for fragment in table.get_fragments() if fragment.fragment_id in numbers]


def _stored_twice(fragments: Sequence[LanceFragment], promised: Mapping[str, int]) -> frozenset[str]:
    """Find videos with more rows than their frames: another run writes them again at this moment."""
    counted: Counter[str] = Counter()
    for fragment in fragments:
        for batch in _batches(fragment, ["video_id"]):
            values = batch.column("video_id").value_counts()
            ids, counts = values.field("values").to_pylist(), values.field("counts").to_pylist()
            counted.update({id_: count for id_, count in zip(ids, counts, strict=True) if id_ in promised})
    return frozenset(id_ for id_, count in counted.items() if count > promised[id_])


def _batches(fragment: LanceFragment, columns: Sequence[str]) -> list[pa.RecordBatch]:
    """Read some small columns of a fragment in the order of its rows."""
    return list(fragment.scanner(columns=list(columns), batch_size=ROWS_PER_BATCH).to_batches())


def _counting(
    batch: pa.RecordBatch, promised: Mapping[str, int], twice: frozenset[str], known: set[tuple[str, int]]
) -> NDArray[np.bool_]:
    """Mark the rows that count; `known` keeps the keys of videos that are stored twice."""
    ids = batch.column("video_id").dictionary_encode()
    names = ids.dictionary.to_pylist()
    indices = ids.indices.to_numpy()
    counts: NDArray[np.bool_] = np.array([name in promised for name in names], np.bool_)[indices]
    if not twice.isdisjoint(names):
        numbers = batch.column("frame_no").to_numpy()
        for row in np.flatnonzero(np.array([name in twice for name in names], np.bool_)[indices]).tolist():
            key = names[indices[row]], int(numbers[row])
            counts[row] = key not in known
            known.add(key)
    return counts


def _cut(fragment_id: int, counts: NDArray[np.bool_], piece_rows: int) -> Pieces:
    """Cut each run of rows that count into pieces of at most `piece_rows`."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], counts, [False]]).astype(np.int8)))
    pieces = [
        (fragment_id, first, min(piece_rows, end - first))
        for start, end in edges.reshape(-1, 2).tolist()
        for first in range(start, end, piece_rows)
    ]
    return np.array(pieces, np.int64).reshape(-1, 3)
