"""Notes of an ingest for the next one: sources that were read, sources that failed, and the report of each run.

Addresses are written without what grants access to them, and are the same with other credentials.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace

from index.redact import redact, redact_uri, redact_values
from index.rows import FailureRow, RunRow, SourceRow
from index.store.database import Tables
from index.store.filters import one_of
from index.videos.known_keys import KnownKeys


class IngestLog:
    """Sources, failures and runs of a library."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._known: KnownKeys | None = None
        self._failed: KnownKeys | None = None

    def note_sources(self) -> None:
        """Take note of the sources and failures that are there, for a run that is the only one to record sources.

        It then clears failures that were there or are its own, without a look for those of all others.
        """
        self._known = KnownKeys(self._tables, "sources", "uri")
        self._failed = KnownKeys(self._tables, "failures", "uri")

    def sources(self) -> dict[str, SourceRow]:
        """Read every source that an ingest found a video in, by URI."""
        return {row["uri"]: SourceRow(**row) for batch in self._tables.batches("sources") for row in batch.to_pylist()}

    def add_sources(self, rows: Iterable[SourceRow]) -> None:
        """Record sources, each in place of the earlier row of its URI; of several rows of one URI the last counts."""
        latest = {uri: asdict(row) | {"uri": uri} for row in rows for uri in [redact_uri(row.uri)]}
        if self._known is None:
            self._tables.upsert("sources", ["uri"], list(latest.values()))
        else:
            self._known.write(list(latest.values()))

    def failures(self) -> list[FailureRow]:
        """Read all failures, by URI and stage."""
        rows = [FailureRow(**row) for row in self._tables.rows("failures").to_pylist()]
        return sorted(rows, key=lambda row: (row.uri, row.stage))

    def add_failures(self, rows: Sequence[FailureRow]) -> None:
        """Record failed sources; the same source and stage again, earlier or in `rows`, count as further attempts."""
        if not rows:
            return
        rows = [replace(row, uri=redact_uri(row.uri), message=redact(row.message)) for row in rows]
        if self._failed is not None:
            self._failed.add([row.uri for row in rows])
        where = one_of("uri", sorted({row.uri for row in rows}))
        before = self._tables.rows("failures", where, ["uri", "stage", "attempts"]).to_pylist()
        attempts = {(row["uri"], row["stage"]): row["attempts"] for row in before}
        counted = {}
        for row in rows:
            key = row.uri, row.stage
            attempts[key] = attempts.get(key, 0) + row.attempts
            counted[key] = asdict(replace(row, attempts=attempts[key]))
        self._tables.upsert("failures", ["uri", "stage"], list(counted.values()))

    def clear_failures(self, uris: Sequence[str], stages: Sequence[str] | None = None) -> None:
        """Forget the failures of sources, or only those of some stages."""
        uris = [redact_uri(uri) for uri in uris]
        if self._failed is not None:
            uris = [uri for uri, has_failed in zip(uris, self._failed.hold(uris), strict=True) if has_failed]
        if uris:
            of_sources = one_of("uri", uris)
            self._tables.delete("failures", of_sources if stages is None else of_sources & one_of("stage", stages))

    def runs(self) -> list[RunRow]:
        """Read the report of every run, the latest first."""
        rows = self._tables.rows("runs").to_pylist()
        loaded = [RunRow(**row | {"report": json.loads(row["report"])}) for row in rows]
        return sorted(loaded, key=lambda row: (row.started_at, row.run_id), reverse=True)

    def add_run(self, row: RunRow) -> None:
        """Record a run, in place of its earlier row."""
        report = json.dumps(redact_values(row.report), sort_keys=True)
        self._tables.upsert("runs", ["run_id"], [asdict(row) | {"report": report}])
