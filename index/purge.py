"""Files that still hold deleted rows are written again, so that these are not merely hidden but gone.

Joining files leaves a file as it is while less than a tenth of its rows is deleted. But an update moves rows: one
that sets a column to its own value, in all rows of a fragment, writes them into a new fragment and takes the old one
out of the table, in one commit. Appends at the same time go through; a delete or a compaction of the same rows makes
it start again. If it is killed, the fragment is as it was and still has deleted rows, by which the next purge finds
it. The old file goes with the older versions of the table.

Indexes hold words, labels and vectors of rows that are gone, and nothing tells which. So all are rebuilt: those that
are quickly built before rows move; an index of vectors is dropped, and built by the refresh that follows. A purge
that is killed in between leaves nothing that only it would have known.
"""

from __future__ import annotations

import numpy as np

from kinodex.index.store.database import Tables, retry_on_conflict
from kinodex.index.store.indexes import forget_deleted
from kinodex.index.store.storage_errors import storage_errors

ROWS_A_FRAGMENT = 1 << 32
"""A row's address: its fragment's number times this, and its place there."""


def holds_deleted(tables: Tables, name: str) -> bool:
    """Return True if files of a table hold rows that are deleted."""
    with storage_errors(tables.uri):
        newest = tables[name].get_version()
    return int(newest["metadata"]["total_deletion_files"]) > 0


def purge_table(tables: Tables, name: str) -> None:
    """Rebuild a table's indexes and rewrite fragments that hold deleted rows, until there is nothing deleted."""
    with storage_errors(tables.uri):
        forget_deleted(tables, name)
    for fragment in _suspects(tables, name) if holds_deleted(tables, name) else ():
        _rewrite(tables, name, fragment)
        if not holds_deleted(tables, name):
            return


def _suspects(tables: Tables, name: str) -> list[int]:
    """List the numbers of all fragments, those with the most gaps first."""
    rows: dict[int, int] = {}
    ends: dict[int, int] = {}
    for batch in tables.batches(name, None, ["_rowaddr"]):
        fragments, places = np.divmod(batch["_rowaddr"].to_numpy().astype(np.int64), ROWS_A_FRAGMENT)
        for fragment in np.unique(fragments).tolist():
            here = places[fragments == fragment]
            rows[fragment] = rows.get(fragment, 0) + len(here)
            ends[fragment] = max(ends.get(fragment, 0), int(here.max()) + 1)
    return sorted(rows, key=lambda fragment: rows[fragment] - ends[fragment])


def _rewrite(tables: Tables, name: str, fragment: int) -> None:
    first = fragment * ROWS_A_FRAGMENT
    of_fragment = f"_rowaddr >= {first} AND _rowaddr < {first + ROWS_A_FRAGMENT}"
    column = tables[name].schema.names[0]
    with storage_errors(tables.uri):
        retry_on_conflict(lambda: tables.to_write(name).update({column: column}, of_fragment))
