"""Create a library's tables, one process at a time.

Two processes that create one table at the same moment would otherwise replace each other's, rows and all. The table of
leases comes first, so that the others are made under a lease; `videos` comes last: where it is, all is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from index.embedding.space import Fingerprint
from index.errors import LeaseLost, LibraryBusy, LibraryError
from index.store.commit_probe import check_commits
from index.store.connection import is_local
from index.store.indexes import index_text
from index.store.leases import DEFAULT_LEASE, Lease
from index.store.schema import table_schemas
from index.store.tables import Tables

SEARCHED_BY_WORDS = ("transcript", "captions")


def make_tables(database: Any, uri: str, settings: Mapping[str, Any], fingerprint: Fingerprint) -> None:
    """Create all tables, those that an interrupted creation left out included; raises LibraryBusy or UnsafeStore."""
    if not is_local(uri):
        check_commits(database, uri)
    tables = Tables(uri, database)
    schemas = table_schemas(settings, fingerprint)
    try:
        _create(tables, schemas)
    except LeaseLost as error:  # of two that made the leases at the same moment the second's table counts
        raise LibraryBusy(f"got {uri}, where another process makes a library at this moment; run again") from error


def _create(tables: Tables, schemas: Mapping[str, pa.Schema]) -> None:
    tables.create("leases", schemas["leases"])
    with Lease(tables, "creation", "another ingest", DEFAULT_LEASE) as lease:
        if "videos" in tables.names():
            raise LibraryError(f"got {tables.uri}, where another process just made a library; run again to use it")
        for name, schema in schemas.items():
            lease.check()
            tables.create(name, schema)
            if name in SEARCHED_BY_WORDS:
                index_text(tables[name])
