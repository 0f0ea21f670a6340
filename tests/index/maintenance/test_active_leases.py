"""Holders of leases are listed, and known to be dead where their process was on this machine."""

from __future__ import annotations

import os

from kinodex.index.library import Library
from kinodex.index.store.schema import equal
from kinodex.index.sweep import addition_lease, lease_holders


def test_holders_by_lease(library: Library) -> None:
    assert lease_holders(library.tables) == ()
    with library.lease("ingest", "a run"), library.lease(addition_lease("captions"), "another"):
        captions, ingest = lease_holders(library.tables)
        assert (captions.lease, captions.owner) == ("add captions", "another")
        assert (ingest.lease, ingest.pid, ingest.is_dead) == ("ingest", os.getpid(), False)
        assert str(ingest).startswith(f"a run on {ingest.host}, process {os.getpid()}, since 20")
    assert lease_holders(library.tables) == ()


def test_a_dead_holder_is_known_on_its_own_machine_alone(library: Library) -> None:
    of_ingest = equal("name", "ingest")
    with library.lease("ingest", "a run"):
        library.tables.update("leases", of_ingest, {"process_start": 1})
        assert [each.is_dead for each in lease_holders(library.tables)] == [True]
        library.tables.update("leases", of_ingest, {"host": "far-away"})
        assert [each.is_dead for each in lease_holders(library.tables)] == [False]
