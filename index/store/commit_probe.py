"""Probe of an object store for lost commits, before a library is made there.

A commit is a new object that must not replace another's of the same name (`If-None-Match: *`). A store that ignores
this silently loses one of two commits made at the same moment, so a library there would lose rows.
"""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from kinodex.index.errors import LibraryError, UnsafeStore
from kinodex.index.store.database import Tables

WRITERS = 4
COMMITS = 4
"""Of each writer. On a store that ignores the condition, over half of all 16 were lost in each of 16 trials."""


def check_commits(uri: str) -> None:
    """Let several writers commit at once and count what is there; raises UnsafeStore if a commit is lost."""
    probe = f"commit_probe_{uuid.uuid4().hex}"
    tables = Tables(uri)
    tables.create(probe, pa.schema([pa.field("writer", pa.int64())]))
    try:
        with ThreadPoolExecutor(WRITERS) as pool:
            tried = list(pool.map(lambda writer: _commit(uri, probe, writer), range(WRITERS)))
        held = tables.count(probe)
    finally:
        tables.drop(probe)
    committed = sum(count for count, _ in tried)
    if held < committed:
        raise UnsafeStore(
            f"got {uri}, in a store that lost {committed - held} of {committed} commits made at once: it does not "
            f"honour If-None-Match; give a store that does (S3, MinIO, GCS, Azure and others) or a local folder"
        )
    for _, failure in tried:
        if failure is not None:
            raise failure


def _commit(uri: str, probe: str, writer: int) -> tuple[int, Exception | None]:
    """Commit a few times; return the number of acknowledged commits, and the error that ended them early, if any."""
    done = 0
    try:
        tables = Tables(uri)
        while done < COMMITS:
            tables.append(probe, pa.table({"writer": [writer]}))
            done += 1
    except (LibraryError, OSError, RuntimeError, ValueError) as error:
        return done, error
    return done, None
