"""One run at a time: who holds a lease, who may take it over, and who learns that it was taken."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from multiprocessing import get_context
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Barrier

import pytest

from kinodex.index.errors import LeaseLost, LibraryBusy, StorageFull, UnsafeStore
from kinodex.index.library import Library
from kinodex.index.store.database import Tables
from kinodex.index.store.filters import equal
from kinodex.index.store.leases import DEFAULT_LEASE, Pace, check_lease
from kinodex.index.store.processes import is_known, is_running, this_process
from tests.support.libraries.random_library import SETTINGS, fingerprint, no_room, run_together
from tests.support.processes import ending_process
from tests.support.servers.s3_server import environment, s3_server, send

BRISK = Pace(beat_s=0.1, patience_s=2.5)
PATIENT = Pace(beat_s=0.1, patience_s=60.0)
ROUNDS = 4
HOLD = """
import sys
from kinodex.index.errors import LeaseLost
from kinodex.index.store.leases import Pace
from kinodex.index.library import Library
with Library.open(sys.argv[1]).lease("ingest", "the first run", Pace(0.1, 2.5)) as lease:
    print(lease.token, flush=True)
    for line in sys.stdin:
        try:
            lease.check()
            print("held", flush=True)
        except LeaseLost as error:
            print(error, flush=True)
"""


class Holder:
    """Another process that holds the lease, and can be asked whether it still does."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.token = self._reply()

    def _reply(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def check(self) -> str:
        assert self.process.stdin is not None
        self.process.stdin.write("check\n")
        self.process.stdin.flush()
        return self._reply()


@contextmanager
def another_holder(library: Library) -> Iterator[Holder]:
    command = [sys.executable, "-c", HOLD, library.uri]
    with ending_process(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Holder(process)
        finally:
            process.kill()


def seem_far_away(tables: Tables) -> None:
    """Let the lease look like one that a process on another machine holds, which nobody here can look up."""
    assert tables.update("leases", equal("name", "ingest"), {"host": "far-away"}) == 1


def test_one_holder_at_a_time(library):
    with library.lease("ingest", "first") as lease:
        lease.check()
        check_lease(library.tables, "ingest", lease.token)
        who = rf"ingest is at work already: first on .*, process {os.getpid()}, since 20.* UTC; wait until it ends"
        with pytest.raises(LibraryBusy, match=who), library.lease("ingest", "second"):
            pass
        with library.lease("add captions", "second") as other:
            other.check()
        lease.check()
    with pytest.raises(LeaseLost, match="nobody holds it"):
        lease.check()
    with pytest.raises(KeyError), library.lease("ingest", "second"):
        raise KeyError
    with library.lease("ingest", "third") as lease:
        lease.check()


@pytest.mark.slow
def test_a_live_process_keeps_its_lease_and_a_killed_one_does_not(library):
    with another_holder(library) as holder:
        began = time.monotonic()
        with pytest.raises(LibraryBusy, match=f"the first run on .*, process {holder.process.pid}"):
            library.lease("ingest", "second").__enter__()
        assert time.monotonic() - began < DEFAULT_LEASE.patience_s
        assert holder.check() == "held"
        holder.process.send_signal(signal.SIGKILL)
        os.waitid(os.P_PID, holder.process.pid, os.WEXITED | os.WNOWAIT)  # dead, and not yet asked after
        began = time.monotonic()
        with library.lease("ingest", "second") as lease:
            assert time.monotonic() - began < DEFAULT_LEASE.patience_s
            lease.check()
            with pytest.raises(LeaseLost, match=r"lost the lease 'ingest' of .*: second on .* holds it"):
                check_lease(library.tables, "ingest", holder.token)


@pytest.mark.slow
def test_a_process_elsewhere_is_watched(library, tables):
    with another_holder(library) as holder:
        seem_far_away(tables)
        began = time.monotonic()
        with pytest.raises(LibraryBusy, match="the first run on far-away"):
            library.lease("ingest", "second", PATIENT).__enter__()
        assert time.monotonic() - began < PATIENT.patience_s
        holder.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, holder.process.pid, os.WSTOPPED | os.WNOWAIT)  # what its beat began is written
        began = time.monotonic()
        with library.lease("ingest", "second", BRISK) as lease:
            assert time.monotonic() - began >= BRISK.patience_s
            holder.process.send_signal(signal.SIGCONT)
            assert holder.check().startswith("lost the lease 'ingest'")
            time.sleep(3 * BRISK.beat_s)  # the holder that woke up renews nothing
            lease.check()
        assert "nobody holds it" in holder.check()


def _race(uri: str, mine: int, start: Barrier, wins: SimpleQueue[tuple[int, int]]) -> None:
    library = Library.open(uri)
    for name in ("new", "known"):
        for number in range(ROUNDS):
            lease = library.lease(f"new {number}" if name == "new" else name, f"racer {mine}")
            start.wait(30)
            try:
                lease.__enter__()
            except LibraryBusy:
                start.wait(30)
            else:
                wins.put((mine, number))
                start.wait(30)
                lease.check()
                lease.__exit__(None, None, None)
            start.wait(30)


@pytest.mark.skipif(sys.platform == "win32", reason="limits the size of files")
def test_a_lease_that_a_full_disk_does_not_take_back_is_free_for_its_process_and_soon_for_all(library):
    for is_awaited in (False, True):
        with ExitStack() as full:
            with library.lease("ingest", "a run", BRISK) as lease:
                full.enter_context(no_room())
            with pytest.raises(StorageFull), library.lease("maintain", "one that cannot begin"):
                pass
        while is_awaited and library.tables.count("leases", equal("token", lease.token)):
            time.sleep(0.05)  # the test's own limit of time ends this
        with library.lease("ingest", "the next run"), library.lease("maintain", "another"):
            pass


@pytest.mark.skipif(sys.platform == "win32", reason="limits the size of files")
def test_a_lease_that_could_not_be_released_is_free_to_whoever_opens_the_library_in_this_process(library):
    """Its pace would not come to releasing it for an hour."""
    with ExitStack() as full, library.lease("ingest", "a run", Pace(beat_s=3600.0)):
        full.enter_context(no_room())
    with Library.open(library.uri).lease("ingest", "another"):
        pass


@pytest.mark.slow
def test_of_several_that_race_one_wins(library):
    context = get_context("spawn")
    start, wins = context.Barrier(3), context.SimpleQueue()
    run_together([context.Process(target=_race, args=(library.uri, mine, start, wins)) for mine in range(3)])
    won = []
    while not wins.empty():
        won.append(wins.get())
    wins.close()
    assert sorted(number for _, number in won) == sorted([*range(ROUNDS)] * 2)
    assert len({mine for mine, _ in won}) > 1


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_processes_are_known_by_more_than_their_number():
    me = this_process()
    assert is_known(me)
    assert is_running(me)
    assert not is_running(replace(me, start=me.start - 1))  # an earlier process of this number
    assert not is_known(replace(me, boot="before the machine was started anew"))
    assert not is_known(replace(me, host="far-away"))
    assert not is_known(replace(me, boot=""))
    with ending_process([sys.executable, "-c", ""]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert not is_running(replace(me, pid=child.pid))
    assert not is_running(replace(me, pid=child.pid))


# A store that loses commits is refused before a library is made there.


@pytest.mark.slow
def test_a_store_that_loses_commits_is_refused(monkeypatch):
    with s3_server() as address, s3_server(careless=True) as careless:
        send(f"{address}/films", "PUT")
        for name, value in environment(address).items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("AWS_ENDPOINT_URL", careless)
        with pytest.raises(UnsafeStore, match=r"lost \d+ of \d+ commits made at once"):
            Library.create("s3://films/careless", SETTINGS, fingerprint())
        monkeypatch.setenv("AWS_ENDPOINT_URL", address)
        assert not Library.exists("s3://films/careless")
