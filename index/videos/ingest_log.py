"""What an ingest keeps for the next one: sources seen, sources that failed, and what each run said of itself."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace

from index.rows import FailureRow, RunRow, SourceRow
from index.store.filters import equal, one_of
from index.store.tables import Tables


def video_ids(tables: Tables) -> set[str]:
    return set(tables.rows("videos", equal("state", "complete"), ["video_id"])["video_id"].to_pylist())


def sources(tables: Tables) -> dict[str, SourceRow]:
    return {row["uri"]: SourceRow(**row) for batch in tables.batches("sources") for row in batch.to_pylist()}


def add_sources(tables: Tables, rows: Iterable[SourceRow]) -> None:
    """Of rows of one URI the last counts."""
    tables.upsert("sources", ["uri"], [asdict(row) for row in {row.uri: row for row in rows}.values()])


def failures(tables: Tables) -> list[FailureRow]:
    rows = [FailureRow(**row) for row in tables.rows("failures").to_pylist()]
    return sorted(rows, key=lambda row: (row.uri, row.stage))


def add_failures(tables: Tables, rows: Sequence[FailureRow]) -> None:
    """Attempts add up, those of earlier rows and those of several rows of one source and stage here."""
    if not rows:
        return
    where = one_of("uri", sorted({row.uri for row in rows}))
    before = tables.rows("failures", where, ["uri", "stage", "attempts"]).to_pylist()
    attempts = {(row["uri"], row["stage"]): row["attempts"] for row in before}
    counted = {}
    for row in rows:
        key = row.uri, row.stage
        attempts[key] = attempts.get(key, 0) + row.attempts
        counted[key] = asdict(replace(row, attempts=attempts[key]))
    tables.upsert("failures", ["uri", "stage"], list(counted.values()))


def clear_failures(tables: Tables, uris: Sequence[str], stages: Sequence[str] | None) -> None:
    if uris:
        of_sources = one_of("uri", uris)
        tables.delete("failures", of_sources if stages is None else of_sources & one_of("stage", stages))


def add_run(tables: Tables, row: RunRow) -> None:
    tables.upsert("runs", ["run_id"], [asdict(row) | {"report": json.dumps(row.report, sort_keys=True)}])


def runs(tables: Tables) -> list[RunRow]:
    """All runs, the latest first."""
    rows = tables.rows("runs").to_pylist()
    loaded = [RunRow(**row | {"report": json.loads(row["report"])}) for row in rows]
    return sorted(loaded, key=lambda row: (row.started_at, row.run_id), reverse=True)
