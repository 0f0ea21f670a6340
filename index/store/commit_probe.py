"""Probe of an object store for lost commits, before a library is made there.

A commit is a new object that must not replace another's of the same name (`If-None-Match: *`). A store that ignores
this silently loses one of two commits made at the same moment, so a library there would lose rows.
"""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa

from index.errors import UnsafeStore
from index.store.database import connect, retry_on_conflict, storage_errors

WRITERS = 4
COMMITS = 4
"""Of each writer. On a store that ignores the condition, over half of all 16 were lost in each of 16 trials."""


def check_commits(database: Any, uri: str) -> None:
    """Let several writers commit at once and count what is there; raises UnsafeStore if a commit is lost.

    Where commits replace each other, some also fail, at an object that changed while it was read: then the number of
    lost commits is the error to report.
    """
    probe = f"commit_probe_{uuid.uuid4().hex}"
    with storage_errors(uri):
        database.create_table(probe, schema=pa.schema([pa.field("writer", pa.int64())]))
        try:
            with ThreadPoolExecutor(WRITERS) as pool:
                tried = list(pool.map(lambda writer: _commit(uri, probe, writer), range(WRITERS)))
            held = database.open_table(probe).count_rows()
        finally:
            database.drop_table(probe)
    committed = sum(count for count, _ in tried)
    if held < committed:
        raise UnsafeStore(
            f"got {uri}, in a store that lost {committed - held} of {committed} commits made at once: it does not "
            f"honour If-None-Match; give a store that does (S3, MinIO, GCS, Azure and others) or a local folder"
        )
    with storage_errors(uri):
        for _, failure in tried:
            if failure is not None:
                raise failure


def _commit(uri: str, probe: str, writer: int) -> tuple[int, Exception | None]:
    """Commit a few times; return the number of acknowledged commits, and the error that ended them early, if any."""
    done = 0
    try:
        table = connect(uri).open_table(probe)
        while done < COMMITS:
            retry_on_conflict(lambda: table.add(pa.table({"writer": [writer]})))
            done += 1
    except (OSError, RuntimeError, ValueError) as error:
        return done, error
    return done, None
