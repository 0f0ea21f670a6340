"""Rows of tables that have a key: each key stands once, and a row with a digest of its own is as it was written.

A key may stand twice after two runs wrote at once; a value changes when a disk fails or somebody edits it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from kinodex.index.store.database import Tables
from kinodex.index.store.digests import altered_digests, are_altered, texts
from kinodex.index.store.filters import chunked, one_of
from kinodex.index.store.schema import ROW_DIGEST, own_columns, primary_key

SHOWN_LETTERS = 80
KEPT = ("speakers",)
"""Tables of which an altered row stays until it is written again: its number would else be given to another voice."""


@dataclass(frozen=True, slots=True)
class WrongRows:
    """Rows of a table that are there twice, or are not as they were written, by their keys."""

    table: str
    doubled: tuple[str, ...]
    altered: tuple[str, ...]

    @property
    def problems(self) -> tuple[str, ...]:
        """One line for each."""
        lines = {"stands twice in": self.doubled, "has other values than were written in": self.altered}
        return tuple(
            f"the row of {key!r:.{SHOWN_LETTERS}} {what} {self.table}" for what, keys in lines.items() for key in keys
        )


def wrong_rows(tables: Tables) -> tuple[WrongRows, ...]:
    """Find these rows in all tables with a key."""
    found = (WrongRows(name, _doubled(tables, name), _altered(tables, name)) for name in _keyed(tables))
    return tuple(each for each in found if each.doubled or each.altered)


def delete_doubled(tables: Tables, found: Sequence[WrongRows]) -> None:
    """Delete all but one row of each key."""
    for name in (each.table for each in found if each.doubled):
        tables.delete_doubles(name, primary_key(tables.schema(name)))


def delete_altered(tables: Tables, found: Sequence[WrongRows]) -> None:
    """Delete rows that are not as they were written, but those that have to stay."""
    for name in (each.table for each in found if each.altered and each.table not in KEPT):
        digests = {digest for batch in _digested(tables, name) for digest in altered_digests(batch)}
        for some in chunked(sorted(digests)):
            tables.delete(name, one_of(ROW_DIGEST, some))


def _keyed(tables: Tables) -> Iterator[str]:
    names = tables.whole_names()
    return (name for name in names if primary_key(tables.schema(name)))


def _doubled(tables: Tables, name: str) -> tuple[str, ...]:
    key = primary_key(tables.schema(name))
    counts = tables.rows(name, None, key).group_by(key).aggregate([([], "count_all")])
    return _names(counts.filter(pc.greater(counts["count_all"], 1)), key)


def _altered(tables: Tables, name: str) -> tuple[str, ...]:
    key, found = primary_key(tables.schema(name)), set[str]()
    for batch in _digested(tables, name):
        found.update(_names(batch.filter(pa.array(are_altered(batch))), key))
    return tuple(sorted(found))


def _digested(tables: Tables, name: str) -> Iterator[pa.RecordBatch]:
    """Read all that digests of rows hold."""
    columns = own_columns(tables[name].schema)
    return tables.batches(name, None, columns, as_stored=True) if ROW_DIGEST in columns else iter(())


def _names(rows: pa.Table | pa.RecordBatch, key: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted(" ".join(map(str, parts)) for parts in zip(*(texts(rows[each]) for each in key), strict=True)))
