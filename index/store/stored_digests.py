"""Digests of rows that a library holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from kinodex.index.store.digests import LEFT_OUT, digests_by_video
from kinodex.index.store.filters import Filter, all_of
from kinodex.index.store.schema import own_columns

if TYPE_CHECKING:
    from kinodex.index.store.database import Tables

ROWS_AT_ONCE = 4096


def read_batches(tables: Tables, name: str, where: Sequence[Filter]) -> Iterator[pa.RecordBatch]:
    """Read all columns of a table that digests hold, a few rows at a time."""
    columns = [column for column in own_columns(tables.schema(name)) if column not in LEFT_OUT]
    yield from tables.batches(name, all_of(where), columns, rows=ROWS_AT_ONCE, as_stored=True)


def read_digests(tables: Tables, name: str, where: Sequence[Filter]) -> Counter[str]:
    """Compute the digests of the rows that match some filters, by video."""
    found: Counter[str] = Counter()
    for batch in read_batches(tables, name, where):
        found.update(digests_by_video(batch))
    return found
