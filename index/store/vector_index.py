"""The index of vectors: HNSW graphs of at most a million rows each, built one by one, so that each fits the memory.

A part is one graph over whole fragments of the table (a segment of Lance's index), committed as soon as it is built:
an interrupted build goes on with the next part. Rows that are new form a part of their own, or are built again
together with small parts once there are some of those: so each row is built a few times at most, however many runs
add to a library, and a search walks a few graphs only. A search asks every part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from kinodex.index.store.database import Tables, retry_on_conflict
from kinodex.index.store.memory import free_memory_bytes

if TYPE_CHECKING:
    from lance import LanceDataset
    from lance.dataset import Index

NAME, COLUMN = "by_vector", "vector"
PART_ROWS = 1 << 20
"""Rows of a part, at most; as many as joining puts into a fragment. A search in fewer, larger graphs is quicker."""
FULL_SHARE = 0.5
"""A part of this share of the most rows is not built again."""
MIN_JOINED = 3
"""This many small parts are built again as one."""
MIN_PART_ROWS = 100_000
"""A part is no smaller than this for want of memory: a search would walk too many."""
GRAPH_BYTES, NUMBER_BYTES = 2_500, 4
"""Memory that building takes for a row, and for each number of its vector (measured)."""
GRAPH: dict[str, Any] = {"m": 20, "ef_construction": 300, "num_partitions": 1}
"""Neighbours of a row in its graph, and candidates while it is built."""


@dataclass(frozen=True, slots=True)
class Part:
    """Rows that one graph holds, or that none holds yet: whole fragments by their ids."""

    fragments: frozenset[int]
    rows: int


@dataclass(frozen=True, slots=True)
class IndexState:
    """Parts of a table's index, and its fragments without one: rows by id."""

    parts: tuple[Part, ...]
    fresh: Mapping[int, int]

    @property
    def fresh_rows(self) -> int:
        """Number of rows that no graph holds."""
        return sum(self.fresh.values())


def read_state(table: LanceDataset) -> IndexState:
    """Read which fragments are in which part; fragments without any vector, as of captions, are left out."""
    fragments = {each.fragment_id: each for each in table.get_fragments()}
    rows = {number: each.count_rows() for number, each in fragments.items()}
    held = [each.fragment_ids & rows.keys() for each in _segments(table)]
    fresh = {number: count for number, count in rows.items() if not any(number in each for each in held)}
    if fresh and table.schema.field(COLUMN).nullable:
        with_vector = {number: fragments[number].count_rows(f"{COLUMN} IS NOT NULL") for number in fresh}
        fresh = {number: count for number, count in with_vector.items() if count}
    return IndexState(tuple(Part(frozenset(each), sum(rows[id_] for id_ in each)) for each in held if each), fresh)


def count_parts(table: LanceDataset) -> int:
    """Count the graphs that a search walks, 0 without an index; takes 10 microseconds."""
    return len(_segments(table))


def build_index(tables: Tables, name: str, part_rows: int | None = None) -> None:
    """Bring an index up to date, or make it, part by part of at most `part_rows` rows; None: as memory allows."""
    table = tables.to_write(name)
    most = part_rows or rows_that_fit(table.schema.field(COLUMN).type.list_size)
    for part in plan_parts(read_state(table), most):
        graph = table.create_index_uncommitted(
            COLUMN, "IVF_HNSW_SQ", NAME, "cosine", replace=True, fragment_ids=sorted(part.fragments), **GRAPH
        )
        retry_on_conflict(partial(_commit, tables, name, graph))


def plan_parts(state: IndexState, part_rows: int) -> list[Part]:
    """Choose the parts to build: of the fragments without a part, and of small parts, each kept whole.

    Older parts are joined in, too, as long as at least three of them are at most twice as large as the rows that were
    gathered so far (the size-tiered merges of LSM trees; O'Neil et al. 1996).
    """
    gathered = [Part(frozenset([number]), rows) for number, rows in state.fresh.items()]
    left = [each for each in state.parts if each.rows < FULL_SHARE * part_rows]
    while gathered:
        most = 2 * sum(each.rows for each in gathered)
        small = [each for each in left if each.rows <= most]
        if len(small) < MIN_JOINED:
            break
        gathered += small
        left = [each for each in left if each.rows > most]
    return _packed(gathered, part_rows)


def _packed(pieces: Sequence[Part], part_rows: int) -> list[Part]:
    """Join pieces, in the order of their fragments, to parts of this many rows; a larger piece is a part of its own."""
    parts: list[Part] = []
    for piece in sorted(pieces, key=lambda each: min(each.fragments)):
        if parts and parts[-1].rows + piece.rows <= part_rows:
            parts[-1] = Part(parts[-1].fragments | piece.fragments, parts[-1].rows + piece.rows)
        else:
            parts.append(piece)
    return parts


def rows_that_fit(dim: int, free_bytes: int | None = None) -> int:
    """Compute how many rows a part may have, so that building it takes half of the free memory at most."""
    free = free_memory_bytes() if free_bytes is None else free_bytes
    return max(MIN_PART_ROWS, min(PART_ROWS, free // 2 // (GRAPH_BYTES + dim * NUMBER_BYTES)))


def _commit(tables: Tables, name: str, graph: Index) -> None:
    """Commit a graph to the newest state of its table, in place of those over the same fragments."""
    tables.to_write(name).commit_existing_index_segments(NAME, COLUMN, [graph])


def _segments(table: LanceDataset) -> list[Any]:
    return [each for index in table.describe_indices() if index.field_names == [COLUMN] for each in index.segments]
