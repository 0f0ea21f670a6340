"""Reading of a plan's pieces: columns of the table that holds the rows, with vectors and titles joined to them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kinodex.index.clocks import moved_table
from kinodex.index.datasets.plan import FramePlan, Pieces
from kinodex.index.datasets.row_keys import row_keys, vectors_of
from kinodex.index.datasets.versions import TablesAt
from kinodex.index.errors import LibraryError
from kinodex.index.store.filters import at_least, below, chunked, one_of
from kinodex.index.store.storage_errors import storage_errors
from kinodex.index.videos import damage

TITLES_KEPT = 10_000


class FrameReader:
    """A reader of a plan's pieces. It opens tables itself, so each process makes its own, after it was started."""

    def __init__(self, plan: FramePlan) -> None:
        self._plan = plan
        self._tables = TablesAt(plan.uri, plan.versions)
        self._titles: dict[str, str] = {}

    def read(self, pieces: Pieces) -> pa.Table:
        """Read some pieces, in this order; raises LibraryError for a frame without its vector, or DamagedRows."""
        with storage_errors(self._plan.uri):
            parts = [self._read_one(*piece) for piece in pieces.tolist()]
        return pa.concat_tables(parts) if parts else self._plan.schema.empty_table()

    def batches(self, pieces: Pieces) -> Iterator[pa.RecordBatch]:
        """Read pieces one after another."""
        for number in range(len(pieces)):
            yield from self.read(pieces[number : number + 1]).to_batches()

    def _read_one(self, fragment_id: int, first: int, rows: int) -> pa.Table:
        choice = self._plan.choice
        base = self._tables[choice.base]
        fragment = base.get_fragment(fragment_id)
        if fragment is None:
            raise LibraryError(f"{self._plan.uri} has no fragment {fragment_id} any more; open the library again")
        columns = damage.with_checksum(choice.stored)
        stored = fragment.scanner(columns=columns, offset=first, limit=rows).to_table()
        damage.check_pictures(stored, self._plan.uri)
        table = moved_table(stored, {id_: -zero_s for id_, zero_s in self._plan.zeros_s.items()})
        if choice.joins_vectors:
            table = table.append_column(self._plan.schema.field("vector"), self._vectors_of(table))
        if choice.vectors is not None:
            damage.check_vectors(table, self._plan.uri)
        if "title" in choice.columns:
            table = table.append_column(self._plan.schema.field("title"), self._titles_of(table))
        return table.select(choice.columns).cast(self._plan.schema)

    def _vectors_of(self, table: pa.Table) -> pa.ChunkedArray:
        """Read the vectors of these frames, in their order."""
        names = table["video_id"].combine_chunks().dictionary_encode()
        ids, of_row = names.dictionary.to_pylist(), names.indices.to_numpy()
        numbers = table["frame_no"].to_numpy()
        # Of all videos of a piece but the first and the last all frames are in it.
        groups = [[ids[0]], ids[1:-1], [ids[-1]]] if len(ids) > 2 else [[name] for name in ids]
        found = pa.concat_tables([self._stored_vectors(group, ids, of_row, numbers) for group in groups if group])
        return vectors_of(row_keys(table, ids), found, ids, self._plan.uri)

    def _stored_vectors(
        self, group: Sequence[str], ids: Sequence[str], of_row: NDArray[np.int32], numbers: NDArray[np.int32]
    ) -> pa.Table:
        """Read the vectors of some videos between the first and the last number that these have here."""
        chosen = numbers[np.isin(of_row, [ids.index(name) for name in group])]
        where = one_of("video_id", group) & at_least("frame_no", int(chosen.min()))
        where &= below("frame_no", int(chosen.max()) + 1)
        assert self._plan.choice.vectors is not None
        return self._tables.rows(self._plan.choice.vectors, where, ["video_id", "frame_no", "vector"])

    def _titles_of(self, table: pa.Table) -> pa.Array:
        """Read the titles of the videos of these frames, in their order."""
        names = table["video_id"].combine_chunks().dictionary_encode()
        ids = names.dictionary.to_pylist()
        if len(self._titles) > TITLES_KEPT:
            self._titles.clear()
        for part in chunked([name for name in ids if name not in self._titles]):
            rows = self._tables.rows("videos", one_of("video_id", part), ["video_id", "title"])
            self._titles |= dict(zip(rows["video_id"].to_pylist(), rows["title"].to_pylist(), strict=True))
        titles = pa.array([self._titles[name] for name in ids], pa.string())
        return pc.take(titles, names.indices)
