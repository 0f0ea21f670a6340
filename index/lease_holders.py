"""Holders of a library's leases at this moment, read without waiting for anybody."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from kinodex.index.store.database import Tables
from kinodex.index.store.filters import other_than
from kinodex.index.store.processes import Process, is_known, is_running
from kinodex.index.store.schema import STAGES

INGEST = "ingest"
"""The lease of a run that writes videos."""
MAINTENANCE = "maintain"


def addition_lease(stage: str) -> str:
    """Name the lease of a run that adds an optional stage."""
    return f"add {stage}"


WRITERS = (INGEST, *map(addition_lease, STAGES))
"""Leases whose holders may have written half of something."""


@dataclass(frozen=True, slots=True)
class LeaseHolder:
    """A holder of a lease. `is_dead`: its process was on this machine and has ended; elsewhere this is unknown."""

    lease: str
    owner: str
    host: str
    pid: int
    since: datetime
    beat_at: datetime
    """Its last sign of life, by its own machine's clock."""
    is_dead: bool

    def __str__(self) -> str:
        return f"{self.owner} on {self.host}, process {self.pid}, since {self.since:%Y-%m-%d %H:%M:%S} UTC"


def lease_holders(tables: Tables) -> tuple[LeaseHolder, ...]:
    """Read the holders of all leases, by name."""
    found = []
    for row in tables.rows("leases", other_than("token", "")).sort_by("name").to_pylist():
        process = Process(row["host"], row["boot"], row["pid"], row["process_start"])
        is_dead = is_known(process) and not is_running(process)
        since = row["since"], row["beat_at"]
        found.append(LeaseHolder(row["name"], row["owner"], row["host"], row["pid"], *since, is_dead))
    return tuple(found)
