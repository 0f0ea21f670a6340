"""Maintain a library while others use it: find problems, delete leftovers, join files, measure tables, remove videos.

The leftovers of an interrupted run look like the rows that a run at work has written so far. So they are searched for
without disturbing anybody, and then searched for again and deleted under the lease of any run that could be writing
them: if that lease is held, the rows are that run's and stay.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from kinodex.index.added_rows import AddedAudit, audit_added, discard_added
from kinodex.index.errors import LibraryBusy, LibraryDamaged, StorageError
from kinodex.index.keyed_rows import delete_altered, delete_doubled, wrong_rows
from kinodex.index.lease_holders import INGEST, MAINTENANCE, WRITERS, LeaseHolder, addition_lease, lease_holders
from kinodex.index.library import Library
from kinodex.index.purge import purge_table
from kinodex.index.store.database import Tables
from kinodex.index.store.indexes import AFTER_RUN, Thresholds, optimize, refresh
from kinodex.index.store.leases import DEFAULT_LEASE, Lease, several_leases
from kinodex.index.store.old_states import delete_uncommitted, has_uncommitted
from kinodex.index.store.places import is_local
from kinodex.index.store.schema import STAGES, check_columns, table_schemas
from kinodex.index.store.storage_errors import storage_errors
from kinodex.index.sweep import Audit, audit, audit_videos, check_leftovers, delete_doubles
from kinodex.index.table_facts import TableFacts, table_facts

OWNER = "kinodex maintain"
UNGUARDED = ("leases", "notes", "metadata", "speakers")
"""Tables that are also written without the lease of one of `WRITERS`."""
SPACE_FACTOR = 1.1
"""Joining the files of a table writes it again before the old ones go: so much of its size must be free."""
T = TypeVar("T")
OnStep = Callable[[str], None]
"""Called with a description of the step that begins."""


@dataclass(frozen=True, slots=True)
class Health:
    """State of a library. `problems` are those of the audit that no run at work explains."""

    audit: Audit
    at_work: tuple[LeaseHolder, ...]
    tables: tuple[TableFacts, ...]

    @property
    def problems(self) -> tuple[str, ...]:
        """One line for each problem; empty where all is well."""
        busy = {each.lease for each in self.at_work if not each.is_dead}
        orphans = () if INGEST in busy else self.audit.orphans
        leftovers = tuple(each for each in self.audit.added.leftovers if addition_lease(each.stage) not in busy)
        return replace(self.audit, orphans=orphans, added=replace(self.audit.added, leftovers=leftovers)).problems

    @property
    def data_bytes(self) -> int:
        """Size of the newest state of all tables."""
        return sum(table.data_bytes for table in self.tables)

    @property
    def disk_bytes(self) -> int | None:
        """Size of all files, those of older states included; None in an object store."""
        sizes = [table.disk_bytes for table in self.tables if table.disk_bytes is not None]
        return sum(sizes) if sizes else None


@dataclass(frozen=True, slots=True)
class Upkeep:
    """Report of a maintenance, with the library before and after."""

    before: Health
    removed: Audit
    """Findings of the first audit that were deleted; `broken` ones only on request."""
    notes: tuple[str, ...]
    """Work that was left undone, and why."""
    after: Health


def health(library: Library, deep: bool = False) -> Health:
    """Audit a library, and measure its tables; only reads, with `deep` every picture and vector, too."""
    check_tables(library)
    workers = lease_holders(library.tables)
    found = audit(library, deep)
    # A run may have begun, or ended, meanwhile.
    working = {each.lease: each for each in (*workers, *lease_holders(library.tables))}
    return Health(found, tuple(working.values()), table_facts(library.tables))


def check_tables(library: Library) -> None:
    """Raise LibraryDamaged if a table is missing that every library has."""
    schemas = table_schemas(library.settings, library.fingerprint)
    whole = library.tables.whole_names()
    missing = [name for name in schemas if name not in whole]
    for name in schemas.keys() - {*missing}:
        check_columns(library.tables.schema(name), schemas[name], name, library.uri)
    if missing:
        raise LibraryDamaged(
            f"got {library.uri}, a damaged library without its tables {', '.join(missing)}; restore them from a copy, "
            f"or `kinodex maintain {library.uri} --repair` makes them again and says what is lost"
        )


def maintain(
    library: Library,
    keep_s: float = AFTER_RUN.keep_s,
    discard_broken: bool = False,
    purge: bool = False,
    on_step: OnStep = lambda step: None,
    deep: bool = False,
) -> Upkeep:
    """Delete leftovers of interrupted runs, join files, update indexes, delete table versions older than `keep_s`.

    Safe beside runs and readers: rows that a run at work may be writing stay. With `discard_broken`, videos and
    additions with lost rows or altered values are deleted too, so that the next run makes them again. With `purge`,
    files and indexes that hold anything deleted are rewritten. `deep` reads every picture and vector, too. `keep_s` of
    0 is for a library that nobody else uses. Raises LibraryBusy if another maintenance is at work, and any run where
    `keep_s` is 0.
    """
    check_writable(library.uri)
    with Lease(library.tables, MAINTENANCE, OWNER, DEFAULT_LEASE):
        on_step("looking at every row's video")
        before = health(library, deep)
        removed, notes = _remove(library, before.audit, discard_broken, deep)
        with several_leases(library.tables, WRITERS if keep_s == 0 else (), OWNER):
            notes += _tidy(library, keep_s, purge, on_step)
        notes += _delete_uncommitted(library.tables)
        on_step("looking again")
        after = health(library, deep)
    return Upkeep(_without_ourselves(before), removed, tuple(notes), _without_ourselves(after))


def check_writable(uri: str) -> None:
    """Raise StorageError for a folder that may not be written, before anything is tried."""
    if is_local(uri) and not os.access(uri, os.W_OK | os.X_OK):
        raise StorageError(
            f"got {uri}, which may only be read here, and maintenance writes; run it where the library may be "
            "written, or use --check, which only looks"
        )


def _without_ourselves(found: Health) -> Health:
    return replace(found, at_work=tuple(each for each in found.at_work if each.lease != MAINTENANCE))


def _remove(library: Library, found: Audit, discard_broken: bool, deep: bool) -> tuple[Audit, list[str]]:
    """Delete leftovers, and broken rows on request; return the deleted ones, and why some could not be deleted."""
    notes: list[str] = []
    nothing = Audit(found.videos, (), (), ())
    removed = nothing
    broken = (*found.broken, *found.damaged, *found.altered) if discard_broken else ()
    keyed = [each for each in found.keyed if each.doubled or discard_broken]
    if found.orphans or found.doubled or broken or keyed:
        work = partial(_remove_videos, library, discard_broken, deep)
        removed = _under_lease(library.tables, INGEST, work, nothing, notes)
    added = AddedAudit()
    wrong = (*found.added.leftovers, *(found.added.broken if discard_broken else ()))
    for stage in STAGES:
        if any(each.stage == stage for each in wrong):
            stage_work = partial(_remove_added, library, stage, discard_broken, deep)
            gone = _under_lease(library.tables, addition_lease(stage), stage_work, AddedAudit(), notes)
            added = AddedAudit(added.leftovers + gone.leftovers, added.broken + gone.broken)
    return replace(removed, added=added), notes


def _remove_videos(library: Library, discard_broken: bool, deep: bool) -> Audit:
    keyed = wrong_rows(library.tables)
    delete_doubled(library.tables, keyed)
    if discard_broken:
        delete_altered(library.tables, keyed)
    else:
        keyed = tuple(replace(each, altered=()) for each in keyed if each.doubled)
    found = replace(audit_videos(library, deep and discard_broken), keyed=keyed)
    found = found if discard_broken else replace(found, broken=(), altered=())
    check_leftovers(library, found.orphans)
    altered = {video_id for each in found.altered for video_id in each.video_ids}
    library.writer.discard(*found.orphans, *found.broken, *{*found.damaged, *altered})
    if found.doubled:
        delete_doubles(library.tables, library.own_vectors, found.doubled)
    return found


def _remove_added(library: Library, stage: str, discard_broken: bool, deep: bool) -> AddedAudit:
    found = audit_added(library, [stage], deep and discard_broken)
    found = found if discard_broken else replace(found, broken=())
    discard_added(library, (*found.leftovers, *found.broken))
    return found


def _under_lease(tables: Tables, lease: str, work: Callable[[], T], otherwise: T, notes: list[str]) -> T:
    """Do some work under a lease; where another run holds it, note that it was not done."""
    try:
        with Lease(tables, lease, OWNER, DEFAULT_LEASE):
            return work()
    except LibraryBusy as error:
        notes.append(f"rows that a run at work may have half written were left: {error}")
        return otherwise


def _tidy(library: Library, keep_s: float, purge: bool, on_step: OnStep) -> list[str]:
    """Tidy every table on its own; one that the disk has no room to write again is left, and noted."""
    when = replace(AFTER_RUN, keep_s=keep_s, stale_rows=0, stale_lines=0)
    on_step("joining files, bringing indexes up to date, deleting what only older states hold")
    notes = _optimize_all(library.tables, when)
    if purge:
        on_step("writing files again that hold deleted rows")
        notes += _purge_all(library.tables)
    refresh(library.tables, when)
    if purge:
        _optimize_all(library.tables, when)
    return notes


def _delete_uncommitted(tables: Tables) -> list[str]:
    """Delete files that killed writers never committed, under the leases of all writers; else note that they stay."""
    names = [name for name in tables.whole_names() if name not in UNGUARDED]
    found = [name for name in names if has_uncommitted(tables, name)]
    try:
        with several_leases(tables, WRITERS if found else (), OWNER):
            for name in found:
                delete_uncommitted(tables, name)
    except LibraryBusy as error:
        return [f"files that a writer at work may be about to commit were left: {error}"]
    return []


def _optimize_all(tables: Tables, when: Thresholds) -> list[str]:
    notes = []
    for facts in table_facts(tables):
        short = _missing_space(tables, facts) if facts.fragments > 1 else None
        if short is not None:
            notes.append(f"the files of {facts.name} were not joined: {short}")
        else:
            with storage_errors(tables.uri):
                optimize(tables, facts.name, when)
    return notes


def _purge_all(tables: Tables) -> list[str]:
    """Purge all tables but leases, which hold nothing of videos, and whose rows are replaced all the time."""
    notes = []
    for facts in table_facts(tables):
        if facts.name == "leases":
            continue
        short = _missing_space(tables, facts)
        if short is not None:
            notes.append(f"what was deleted stays in the files of {facts.name}: {short}")
        else:
            purge_table(tables, facts.name)
    return notes


def _missing_space(tables: Tables, facts: TableFacts) -> str | None:
    """Explain that a table is too large for the free disk space to be written again; None where it is not."""
    free = shutil.disk_usage(tables.uri).free if is_local(tables.uri) else None
    if free is None or free >= SPACE_FACTOR * facts.data_bytes:
        return None
    return f"that takes {facts.data_bytes / 1e9:.2f} GB for a while, and {free / 1e9:.2f} GB are free"
