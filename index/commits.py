"""Whether an object store keeps commits apart, tried out before a library is made there.

A commit is a new object that must not replace another's of the same name (`If-None-Match: *`). A store that ignores
this loses one of two commits made at the same moment without a word, so a library there would lose rows.
"""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa

from index.errors import UnsafeStore
from index.storage import connect, storage_errors
from index.tables import patiently

WRITERS = 4
COMMITS = 4
"""By each writer. On a store that ignores the condition, over half of all 16 were lost in each of 16 trials."""


def check_commits(database: Any, uri: str) -> None:
    """Let several writers commit at once and count what is there; raises UnsafeStore if a commit is lost."""
    probe = f"commit_probe_{uuid.uuid4().hex}"
    with storage_errors(uri):
        database.create_table(probe, schema=pa.schema([pa.field("writer", pa.int64())]))
        try:
            with ThreadPoolExecutor(WRITERS) as pool:
                list(pool.map(lambda writer: _commit(uri, probe, writer), range(WRITERS)))
            held = database.open_table(probe).count_rows()
        finally:
            database.drop_table(probe)
    lost = WRITERS * COMMITS - held
    if lost:
        raise UnsafeStore(
            f"got {uri}, in a store that lost {lost} of {WRITERS * COMMITS} commits made at once: it does not honour "
            f"If-None-Match; give a store that does (S3, MinIO, GCS, Azure and others) or a local folder"
        )


def _commit(uri: str, probe: str, writer: int) -> None:
    table = connect(uri).open_table(probe)
    for _ in range(COMMITS):
        patiently(lambda: table.add(pa.table({"writer": [writer]})))
