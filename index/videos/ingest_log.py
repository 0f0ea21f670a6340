"""The notes of ingests for the next one: sources that were read, those that failed, and the report of each run.

Addresses are written without what grants access to them, and are the same with other credentials.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace

from kinodex.index.rows import FailureRow, RunRow, SourceRow, VideoRow, known
from kinodex.index.store.database import Tables
from kinodex.index.store.filters import chunked, equal, one_of
from kinodex.index.stored_json import read_object
from kinodex.index.videos.known_keys import KnownKeys
from kinodex.redaction import redact, redact_uri, redact_values


class IngestLog:
    """Sources, failures and runs of a library."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._known: KnownKeys | None = None
        self._failed: KnownKeys | None = None

    def note_sources(self) -> None:
        """Take note of all sources and failures, for a run that alone records sources: it then clears what it knows."""
        self._known = KnownKeys(self._tables, "sources", "uri")
        self._failed = KnownKeys(self._tables, "failures", "uri")

    def sources(self) -> dict[str, SourceRow]:
        """Read every source that an ingest found a video in, by URI."""
        return {
            row["uri"]: known(SourceRow, row) for batch in self._tables.batches("sources") for row in batch.to_pylist()
        }

    def sources_with(self, column: str, values: Sequence[str]) -> list[SourceRow]:
        """Read the sources with one of these values in a column: `uri`, or `video_id`."""
        tables = [self._tables.rows("sources", one_of(column, some)) for some in chunked(values)]
        return [known(SourceRow, row) for table in tables for row in table.to_pylist()]

    def places(self, video: VideoRow) -> list[SourceRow]:
        """Read the places where ingests found a video: first its address, then copies by URI.

        An address that holds another video by now comes last; one of which nothing is noted has no stamp.
        """
        of_address = one_of("uri", [video.uri, redact_uri(video.uri)])
        rows = self._tables.rows("sources", of_address | equal("video_id", video.video_id)).to_pylist()
        found = sorted(
            (known(SourceRow, row) for row in rows), key=lambda row: (row.uri != redact_uri(video.uri), row.uri)
        )
        if not found or redact_uri(found[0].uri) != redact_uri(video.uri):
            found.insert(0, SourceRow(video.uri, video.video_id, None, "", video.ingested_at))
        return sorted(found, key=lambda row: row.video_id != video.video_id)

    def forget_sources(self, uris: Sequence[str]) -> None:
        """Forget sources: the next ingest of one reads its bytes again."""
        for some in chunked(uris):
            self._tables.delete("sources", one_of("uri", some))

    def add_sources(self, rows: Iterable[SourceRow]) -> None:
        """Record sources, each in place of the earlier row of its URI; of several rows of one URI the last counts."""
        latest = {uri: asdict(row) | {"uri": uri} for row in rows for uri in [redact_uri(row.uri)]}
        if self._known is None:
            self._tables.upsert("sources", ["uri"], list(latest.values()))
        else:
            self._known.write(list(latest.values()))

    def failures(self) -> list[FailureRow]:
        """Read all failures, by URI and stage."""
        rows = [known(FailureRow, row) for row in self._tables.rows("failures").to_pylist()]
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
        what = f"the report of a run of {self._tables.uri}"
        loaded = [known(RunRow, row | {"report": read_object(row["report"], what)}) for row in rows]
        return sorted(loaded, key=lambda row: (row.started_at, row.run_id), reverse=True)

    def add_run(self, row: RunRow) -> None:
        """Record a run, in place of its earlier row."""
        report = json.dumps(redact_values(row.report), sort_keys=True)
        self._tables.upsert("runs", ["run_id"], [asdict(row) | {"report": report}])
