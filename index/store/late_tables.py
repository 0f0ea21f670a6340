"""Tables that a library gets when something first needs them."""

from __future__ import annotations

import pyarrow as pa

from kinodex.index.store.database import Tables
from kinodex.index.store.indexes import index_text, is_worded
from kinodex.index.store.leases import awaited_lease
from kinodex.index.store.schema import LATE_TABLES
from kinodex.index.store.storage_errors import storage_errors

OWNER = "a run that makes a table"


def ensure_table(tables: Tables, name: str, schema: pa.Schema | None = None) -> None:
    """Create a table unless it is there, in one process at a time; `schema` of None is that of `LATE_TABLES`."""
    if tables.has(name):
        return
    with awaited_lease(tables, name, OWNER):
        if not tables.has(name):
            create_table(tables, name, LATE_TABLES[name] if schema is None else schema)


def create_table(tables: Tables, name: str, schema: pa.Schema) -> None:
    """Create a table, with an index of words where it is searched by them: without one nothing would be found."""
    tables.create(name, schema)
    if is_worded(name):
        with storage_errors(tables.uri):
            index_text(tables, name)
