"""Leases: the right to be the only process, on any machine, to do one thing in a library.

A lease is a row that its holder renews every few seconds. Another process that finds it held takes it over if the
holder is dead: at once if its process was on this machine, else after watching the row for a while without seeing it
change. So clocks of different machines are never compared. A holder that was stopped for so long that another took
over learns that at its next commit, however short before it was stopped: each is one to the state of a table that was
the newest before the lease was checked, and who takes a lease over first commits something to every table beside which
no such commit passes (`Tables.fence`). (Gray and Cheriton, "Leases", SOSP 1989, with the writes guarded by the token,
since a lease that is timed alone cannot stop a holder that sleeps.)
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from types import MappingProxyType, TracebackType
from typing import Any

import pyarrow.compute as pc
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_random

from kinodex.index.errors import LeaseLost, LibraryBusy, LibraryError, StorageError, StorageFull
from kinodex.index.store.database import Tables
from kinodex.index.store.filters import equal
from kinodex.index.store.left_leases import LEFT
from kinodex.index.store.processes import Process, is_known, is_running, this_process

LOOK_S = 1.0
"""Pause between two looks at a lease that another machine holds, until its holder is seen alive or times out."""


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds between renewals of a lease, and seconds without a renewal after which another may take over."""

    beat_s: float = 10.0
    patience_s: float = 45.0


DEFAULT_LEASE = Pace()
BROKEN_OFF = {"beat": -1}
"""The mark of a lease whose holder ended with an error."""


class Lease:
    """A lease, held within its `with` block. `check_lease` takes its `token`, in any process."""

    def __init__(self, tables: Tables, name: str, owner: str, pace: Pace, fences: bool = True) -> None:
        self.name = name
        self.token = uuid.uuid4().hex
        self.is_taken_over = False
        self._tables = tables
        self._owner = owner
        self._pace = pace
        self._fences = fences
        self._ended = threading.Event()
        self._heart = threading.Thread(target=self._beat, name=f"lease {name}", daemon=True)

    def __enter__(self) -> Lease:
        try:
            self.is_taken_over = take(self._tables, self.name, self.token, self._owner, self._pace)
            self._heart.start()
            if self.is_taken_over and self._fences:
                _fence(self._tables, [self.token])
            self._tables.guards[self.name] = self.check
        except (StorageError, StorageFull, RuntimeError):  # it may have been taken; or there is no memory for a thread
            self._leave()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._tables.guards.pop(self.name, None)
        self._ended.set()
        self._heart.join()
        self._leave(BROKEN_OFF if kind is not None else {})

    def check(self) -> None:
        """Raise LeaseLost if another run took over: nothing more may be written then."""
        check_lease(self._tables, self.name, self.token)

    def _leave(self, state: Mapping[str, int] = MappingProxyType({})) -> None:
        """Release it, now or once the store takes that: what was done under it stands, and its own error counts."""
        if self.token in LEFT.unfenced:
            return
        try:
            self._release(state)
        except LibraryError:
            LEFT.release_later(self.token, partial(self._release, state), self._pace.beat_s)

    def _release(self, state: Mapping[str, int]) -> None:
        _update(self._tables, self.name, self.token, {"token": "", **state})

    def _beat(self) -> None:
        beat = 1
        while not self._ended.wait(self._pace.beat_s):
            try:
                if not _update(self._tables, self.name, self.token, {"beat": beat, "beat_at": datetime.now(UTC)}):
                    return
                beat += 1
            except LibraryError:
                continue  # the store may answer the next time; if not, the next use of the library reports it


@contextmanager
def several_leases(tables: Tables, names: Iterable[str], owner: str) -> Iterator[None]:
    """Hold several leases; what holders before may be about to commit is ended once, when all are taken.

    One that is given back before that is marked as broken off, for its next holder to do so.
    """
    with ExitStack() as held:
        leases = [held.enter_context(Lease(tables, name, owner, DEFAULT_LEASE, fences=False)) for name in names]
        if taken_over := [lease.token for lease in leases if lease.is_taken_over]:
            _fence(tables, taken_over)
        yield


@contextmanager
def awaited_lease(tables: Tables, name: str, owner: str, timeout_s: float = 60.0) -> Iterator[Lease]:
    """Hold a lease that others hold for moments only, after them; raises LibraryBusy if one does for longer."""
    busy = retry_if_exception_type(LibraryBusy)
    retry = Retrying(retry=busy, wait=wait_random(0.05, 0.2), stop=stop_after_delay(timeout_s), reraise=True)
    with ExitStack() as held:
        yield retry(lambda: held.enter_context(Lease(tables, name, owner, DEFAULT_LEASE)))


def check_lease(tables: Tables, name: str, token: str) -> None:
    """Raise LeaseLost unless the lease of this name still has this token."""
    row = _row(tables, name)
    if row is None or row["token"] != token:
        who = f"{_holder(row)} holds it" if row is not None and row["token"] else "nobody holds it"
        raise LeaseLost(f"lost the lease {name!r} of {tables.uri}: {who}; this run was presumed dead and must stop")


def take(tables: Tables, name: str, token: str, owner: str, pace: Pace) -> bool:
    """Take the lease for this process, or raise LibraryBusy. Of several that try at once one succeeds.

    Returns True if the holder before never released it, or ended with an error, which its workers may outlive: what
    they may be about to commit has to be fenced off.
    """
    ours = _claim(name, token, owner)
    left = LEFT.tokens  # as they were before the row is read
    row = _row(tables, name)
    if row is None:
        tables.insert("leases", ["name"], [ours])
        row = _held_row(tables, name)
    if row["token"] not in ("", token) and row["token"] not in left:
        row = _wait_for_end(tables, row, pace)
    is_taken_over = row["token"] not in ("", token) or row["beat"] < 0
    for _ in range(2):  # once more, where it was released in between
        if row["token"] != token:
            _update(tables, name, row["token"], ours, beat=row["beat"])
            row = _held_row(tables, name)
        if row["token"]:
            break
    if row["token"] != token:
        raise _busy(tables, row)
    return is_taken_over


def guard(tables: Tables, name: str, token: str) -> None:
    """Let no commit to these tables pass once the lease is lost that another process holds for this one."""
    tables.guards[name] = partial(check_lease, tables, name, token)


def _fence(tables: Tables, tokens: Sequence[str]) -> None:
    """End what the holder before may be about to commit; where that fails, the next holder has to do it."""
    try:
        tables.fence()
    except LibraryError:
        LEFT.unfenced.update(tokens)
        raise


def _claim(name: str, token: str, owner: str) -> dict[str, Any]:
    now, process = datetime.now(UTC), this_process()
    holder = {"host": process.host, "boot": process.boot, "pid": process.pid, "process_start": process.start}
    return {"name": name, "token": token, "owner": owner, **holder, "since": now, "beat": 0, "beat_at": now}


def _wait_for_end(tables: Tables, row: Mapping[str, Any], pace: Pace) -> Mapping[str, Any]:
    """Return the row once its holder is dead or has released it; raises LibraryBusy if the holder is alive."""
    holder = Process(row["host"], row["boot"], row["pid"], row["process_start"])
    if is_known(holder):
        if is_running(holder):
            raise _busy(tables, row)
        return row
    until = time.monotonic() + pace.patience_s
    while time.monotonic() < until:
        time.sleep(min(LOOK_S, pace.patience_s / 10))
        now = _held_row(tables, row["name"])
        if not now["token"]:
            return now
        if (now["token"], now["beat"]) != (row["token"], row["beat"]):
            raise _busy(tables, now)
    return row


def _row(tables: Tables, name: str) -> Mapping[str, Any] | None:
    leases = tables.small("leases")
    rows = leases.filter(pc.equal(leases["name"], name)).to_pylist()
    return rows[0] if rows else None


def _held_row(tables: Tables, name: str) -> Mapping[str, Any]:
    """Read a row that must be there: none is ever deleted, but a library that is created again starts without any."""
    row = _row(tables, name)
    if row is None:
        raise LeaseLost(f"the lease {name!r} of {tables.uri} was written and is gone; run again, or check the store")
    return row


def _update(tables: Tables, name: str, token: str, values: Mapping[str, Any], beat: int | None = None) -> bool:
    """Change the row if it still has this token, and beat if given; the store decides which of several was first."""
    where = equal("name", name) & equal("token", token)
    return tables.update("leases", where if beat is None else where & equal("beat", beat), values) > 0


def _busy(tables: Tables, row: Mapping[str, Any]) -> LibraryBusy:
    return LibraryBusy(
        f"got {tables.uri}, where {row['name']} is at work already: {_holder(row)}; wait until it ends, or stop it"
    )


def _holder(row: Mapping[str, Any]) -> str:
    return f"{row['owner']} on {row['host']}, process {row['pid']}, since {row['since']:%Y-%m-%d %H:%M:%S} UTC"
