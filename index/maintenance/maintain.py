"""Keeping a library in good order beside those who use it: what is wrong is found, leftovers go, files are joined.

What is left over of an interrupted run looks like what a run at work has half written. So it is looked for without
disturbing anybody, and only then looked for again and deleted under the lease of whoever could be writing it: if that
is held, what was found is theirs and stays.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from index.annotations.additions import STAGES
from index.errors import LibraryBusy, StorageError
from index.maintenance.active_leases import INGEST, MAINTENANCE, WRITERS, AtWork, adding, at_work
from index.maintenance.audit_annotations import AddedAudit, audit_added, discard_added
from index.maintenance.purge import purge
from index.maintenance.sweep import Audit, audit, audit_videos, delete_doubles
from index.store.connection import is_local, storage_errors
from index.store.indexes import AFTER_RUN, Thresholds, optimize, refresh
from index.store.leases import DEFAULT_LEASE, Lease
from index.store.table_stats import TableFacts, table_facts
from index.store.tables import Tables
from index.videos.write import discard

OWNER = "kinodex maintain"
ROOM = 1.1
"""Joining the files of a table writes it anew before the old ones go: so much of its size must be free."""

T = TypeVar("T")
Tell = Callable[[str], None]
"""Told what is done next."""


@dataclass(frozen=True, slots=True)
class Health:
    """How a library stands. `problems` are those of the audit that no run at work explains."""

    audit: Audit
    at_work: tuple[AtWork, ...]
    tables: tuple[TableFacts, ...]

    @property
    def problems(self) -> tuple[str, ...]:
        busy = {each.lease for each in self.at_work if not each.is_dead}
        orphans = () if INGEST in busy else self.audit.orphans
        leftovers = tuple(each for each in self.audit.added.leftovers if adding(each.stage) not in busy)
        return replace(self.audit, orphans=orphans, added=replace(self.audit.added, leftovers=leftovers)).problems

    @property
    def data_bytes(self) -> int:
        return sum(table.data_bytes for table in self.tables)

    @property
    def disk_bytes(self) -> int | None:
        sizes = [table.disk_bytes for table in self.tables if table.disk_bytes is not None]
        return sum(sizes) if sizes else None


@dataclass(frozen=True, slots=True)
class Upkeep:
    """What maintenance did, and the library before and after."""

    before: Health
    removed: Audit
    """What of the first audit was deleted; `broken` only where that was asked for."""
    notes: tuple[str, ...]
    """What was left undone, and why."""
    after: Health


def health(tables: Tables, vectors_table: str) -> Health:
    """See Library.health."""
    workers = at_work(tables)
    found = audit(tables, vectors_table)
    working = {each.lease: each for each in (*workers, *at_work(tables))}  # one may have begun, or ended, meanwhile
    return Health(found, tuple(working.values()), table_facts(tables))


def maintain(
    tables: Tables, vectors_table: str, keep_s: float, discard_broken: bool, purged: bool, tell: Tell
) -> Upkeep:
    """See Library.maintain."""
    check_writable(tables.uri)
    with Lease(tables, MAINTENANCE, OWNER, DEFAULT_LEASE):
        tell("looking at every row's video")
        before = health(tables, vectors_table)
        removed, notes = _remove(tables, vectors_table, before.audit, discard_broken)
        with _nobody_else(tables) if keep_s == 0 else nullcontext():
            notes += _tidy(tables, keep_s, purged, tell)
        tell("looking again")
        after = health(tables, vectors_table)
    return Upkeep(_others(before), removed, tuple(notes), _others(after))


def check_writable(uri: str) -> None:
    """Raises StorageError for a folder that may not be written, before anything is tried."""
    if is_local(uri) and not os.access(uri, os.W_OK | os.X_OK):
        raise StorageError(
            f"got {uri}, which may only be read here, and maintenance writes; run it where the library may be "
            "written, or use --check, which only looks"
        )


def _others(found: Health) -> Health:
    """Without ourselves."""
    return replace(found, at_work=tuple(each for each in found.at_work if each.lease != MAINTENANCE))


def _remove(tables: Tables, vectors_table: str, found: Audit, discard_broken: bool) -> tuple[Audit, list[str]]:
    """Delete what is left over, and what is broken if wanted; returns what went, and why some could not."""
    notes: list[str] = []
    nothing = Audit(found.videos, (), (), ())
    removed = nothing
    if found.orphans or found.doubled or (discard_broken and found.broken):
        work = partial(_remove_videos, tables, vectors_table, discard_broken)
        removed = _alone(tables, INGEST, work, nothing, notes)
    added = AddedAudit()
    wrong = (*found.added.leftovers, *(found.added.broken if discard_broken else ()))
    for stage in STAGES:
        if any(each.stage == stage for each in wrong):
            work_on = partial(_remove_added, tables, vectors_table, stage, discard_broken)
            gone = _alone(tables, adding(stage), work_on, AddedAudit(), notes)
            added = AddedAudit(added.leftovers + gone.leftovers, added.broken + gone.broken)
    return replace(removed, added=added), notes


def _remove_videos(tables: Tables, vectors_table: str, discard_broken: bool) -> Audit:
    found = audit_videos(tables, vectors_table)
    found = found if discard_broken else replace(found, broken=())
    discard(tables, vectors_table, (*found.orphans, *found.broken))
    if found.doubled:
        delete_doubles(tables, vectors_table, found.doubled)
    return found


def _remove_added(tables: Tables, vectors_table: str, stage: str, discard_broken: bool) -> AddedAudit:
    found = audit_added(tables, vectors_table, [stage])
    found = found if discard_broken else replace(found, broken=())
    discard_added(tables, (*found.leftovers, *found.broken))
    return found


def _alone(tables: Tables, lease: str, work: Callable[[], T], otherwise: T, notes: list[str]) -> T:
    """Do a work under a lease; where somebody else holds it, note that it was not done."""
    try:
        with Lease(tables, lease, OWNER, DEFAULT_LEASE):
            return work()
    except LibraryBusy as error:
        notes.append(f"what a run at work may have half written was left: {error}")
        return otherwise


@contextmanager
def _nobody_else(tables: Tables) -> Iterator[None]:
    """No run at work and none that begins: raises LibraryBusy if there is one."""
    with ExitStack() as held:
        for name in WRITERS:
            held.enter_context(Lease(tables, name, OWNER, DEFAULT_LEASE))
        yield


def _tidy(tables: Tables, keep_s: float, purged: bool, tell: Tell) -> list[str]:
    """Every table on its own; one that there is no room to write anew is left, and noted."""
    when = replace(AFTER_RUN, keep_s=keep_s, stale_rows=0, stale_lines=0)
    tell("joining files, bringing indexes up to date, deleting what only older states hold")
    notes = _optimize_all(tables, when)
    if purged:
        tell("writing files anew that hold deleted rows")
        notes += _purge_all(tables)
    refresh(tables, when)
    if purged:
        _optimize_all(tables, when)
    return notes


def _optimize_all(tables: Tables, when: Thresholds) -> list[str]:
    notes = []
    for facts in table_facts(tables):
        short = _lacking_room(tables, facts) if facts.fragments > 1 else None
        if short is not None:
            notes.append(f"the files of {facts.name} were not joined: {short}")
        else:
            with storage_errors(tables.uri):
                optimize(tables[facts.name], when)
    return notes


def _purge_all(tables: Tables) -> list[str]:
    """Leases are left out: they hold nothing of videos, and rows of them are replaced all the time."""
    notes = []
    for facts in table_facts(tables):
        short = _lacking_room(tables, facts)
        if short is not None:
            notes.append(f"what was deleted stays in the files of {facts.name}: {short}")
        elif facts.name != "leases":
            purge(tables, facts.name)
    return notes


def _lacking_room(tables: Tables, facts: TableFacts) -> str | None:
    """What writing a table anew would take, where there is less."""
    free = shutil.disk_usage(tables.uri).free if is_local(tables.uri) else None
    if free is None or free >= ROOM * facts.data_bytes:
        return None
    return f"that takes {facts.data_bytes / 1e9:.2f} GB for a while, and {free / 1e9:.2f} GB are free"
