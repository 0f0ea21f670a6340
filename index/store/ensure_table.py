"""Make one of the late tables, or one for a model of sentences, when something first needs it."""

from __future__ import annotations

import pyarrow as pa
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_random

from index.errors import LibraryBusy
from index.store.database import Tables
from index.store.indexes import WORDED, index_text
from index.store.late_tables import LATE_TABLES
from index.store.leases import DEFAULT_LEASE, Lease

CREATION_TIMEOUT_S = 60.0
"""Longest wait for another process that creates the table."""
OWNER = "a run that makes a table"


def ensure_table(tables: Tables, name: str, schema: pa.Schema | None = None) -> None:
    """Create a table unless it is there, in one process at a time; `schema` of None is that of `LATE_TABLES`."""
    retry = Retrying(
        retry=retry_if_exception_type(LibraryBusy),
        wait=wait_random(0.05, 0.2),
        stop=stop_after_delay(CREATION_TIMEOUT_S),
        reraise=True,
    )
    for attempt in retry:
        with attempt:
            if not tables.has(name):
                with Lease(tables, name, OWNER, DEFAULT_LEASE):
                    if not tables.has(name):
                        _create(tables, name, LATE_TABLES[name] if schema is None else schema)


def _create(tables: Tables, name: str, schema: pa.Schema) -> None:
    tables.create(name, schema)
    if name in WORDED:
        index_text(tables, name)  # without an index a search for words finds nothing
