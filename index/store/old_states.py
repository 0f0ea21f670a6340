"""Deletion of what only old states of a table hold, beside writers at work.

Lance's own cleanup also deletes files that no state names once they are seven days old by this machine's clock. Where
that clock is ahead, these are the files that a writer is about to commit. So here only files go that some old state
names; others go while nobody writes (`delete_uncommitted`). A state's age is by the clock of the disk it lies on; an
object store does not tell its clock, so there the last `KEPT_STATES` stay, whatever their age.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

from kinodex.index.store.database import Tables
from kinodex.index.store.newest_state import state_mark
from kinodex.index.store.places import is_local, open_files, table_place
from kinodex.index.store.storage_errors import storage_errors

if TYPE_CHECKING:
    from lance import CleanupCandidateFile, LanceDataset
    from lance.file import LanceFileSession

KEPT_STATES = 20
"""A writer that began at one of these may still commit: it reads what came after."""
MOST_FILES = 1 << 31
DELETIONS_AT_ONCE = 16
NEVER = timedelta(days=365_000)
"""Older than any state."""


def delete_old_states(tables: Tables, name: str, keep_s: float) -> None:
    """Delete states of a table that are older than `keep_s`, and the files that only they name; tagged ones stay."""
    with storage_errors(tables.uri):
        table = tables[name]
        old = _old_versions(tables.uri, name, table, keep_s)
        if old:
            found = table.explain_cleanup_old_versions(
                versions=old, include_files=True, max_files=MOST_FILES, error_if_tagged_old_versions=False
            )
            _delete_files(tables.uri, name, [each for each in found.candidate_files if not each.unverified])


def has_uncommitted(tables: Tables, name: str) -> bool:
    """Return True if there are files that no state names, and that a killed writer left long ago, by this machine's
    clock.
    """
    with storage_errors(tables.uri):
        found = tables[name].explain_cleanup_old_versions(NEVER, include_files=True, error_if_tagged_old_versions=False)
    return any(each.unverified for each in found.candidate_files)


def delete_uncommitted(tables: Tables, name: str) -> None:
    """Delete these files; only for who holds the leases of all who write the table."""
    with storage_errors(tables.uri):
        tables[name].cleanup_old_versions(NEVER, error_if_tagged_old_versions=False)


def _old_versions(uri: str, name: str, table: LanceDataset, keep_s: float) -> list[int]:
    """List the states that are older than this many seconds, all but the newest for 0."""
    versions = sorted(ref["version"] for ref in table.version_refs())[:-1]
    if not keep_s:
        return versions
    if is_local(uri):
        before_s = disk_time_s(uri) - keep_s
        marks = ((version, state_mark(table_place(uri, name), version)) for version in versions)
        return [version for version, mark in marks if mark is not None and mark[0] / 1e9 < before_s]
    before_s = time.time() - keep_s
    states: list[Any] = table.versions()
    committed_s = {each["version"]: each["timestamp"].timestamp() for each in states}
    return [version for version in versions[: 1 - KEPT_STATES] if committed_s.get(version, before_s) < before_s]


def disk_time_s(folder: str) -> float:
    """Read the clock by which the files of a folder are dated, that of a server where it lies on one."""
    with TemporaryFile(dir=folder, buffering=0) as file:
        file.write(b" ")
        return os.fstat(file.fileno()).st_mtime


def _delete_files(uri: str, name: str, files: Iterable[CleanupCandidateFile]) -> None:
    """Delete files of a table, the states themselves last: so one whose files are gone is found again."""
    folder = table_place(uri, name)
    session = open_files(folder)
    inside = [(each.kind, each.path.rpartition(f"/{Path(folder).name}/")[2]) for each in files]
    with ThreadPoolExecutor(DELETIONS_AT_ONCE) as pool:
        for are_states in (False, True):
            chosen = [path for kind, path in inside if (kind == "manifest") == are_states]
            list(pool.map(lambda path: _delete(session, path), chosen))
    for parent in {Path(folder, path).parent for kind, path in inside if kind == "index" and is_local(uri)}:
        with suppress(OSError):  # another file is in it
            parent.rmdir()


def _delete(session: LanceFileSession, path: str) -> None:
    try:
        session.delete_file(path)
    except OSError:
        if session.contains(path):  # else another process deleted it first
            raise
