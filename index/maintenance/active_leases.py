"""Who is at work in a library at this moment, as far as its leases tell without waiting for anybody."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lancedb.expr import col, lit

from index.annotations.additions import STAGES
from index.store.process_identity import Process, is_known, is_running
from index.store.tables import Tables

INGEST = "ingest"
"""The lease of whoever writes videos."""
MAINTENANCE = "maintain"


def adding(stage: str) -> str:
    """The lease of whoever adds an optional stage."""
    return f"add {stage}"


WRITERS = (INGEST, *map(adding, STAGES))
"""Leases whose holders may have written half of something."""


@dataclass(frozen=True, slots=True)
class AtWork:
    """Who holds a lease. `is_dead`: its process was on this machine and has ended; elsewhere nobody can tell."""

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


def at_work(tables: Tables) -> tuple[AtWork, ...]:
    """Everybody who holds a lease, by its name."""
    rows = tables.rows("leases", col("token") != lit("")).sort_by("name").to_pylist()
    return tuple(_at_work(row) for row in rows)


def _at_work(row: dict[str, Any]) -> AtWork:
    process = Process(row["host"], row["boot"], row["pid"], row["process_start"])
    return AtWork(
        lease=row["name"],
        owner=row["owner"],
        host=row["host"],
        pid=row["pid"],
        since=row["since"],
        beat_at=row["beat_at"],
        is_dead=is_known(process) and not is_running(process),
    )
