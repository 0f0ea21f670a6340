"""Ingest what arrives in a place, round after round, until it is stopped: `kinodex ingest --watch`.

The place is looked at every few seconds. What is new or changed since it was last taken, and no longer being written,
is one round: an ingest of its own, which holds the library's lease for that long and no longer. So other ingests and
`kinodex maintain` have their turn between two rounds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

from index.errors import LibraryBusy
from jobs.ingest.config import IngestConfig
from jobs.ingest.outcomes import IngestReport, Watch
from jobs.ingest.run import run_ingest
from pipeline.errors import SourceError, SourceMissing
from pipeline.sources.fetch import Source, Stamp, is_remote, stamp


class Arrivals:
    """Sources of a place from look to look: which of them have arrived, and which were taken already.

    A source has arrived if its size and time of change are those of the last look, or, of a local file, if it was last
    changed `quiet_s` seconds ago or earlier. One without a stamp is taken once.
    """

    def __init__(self, quiet_s: float) -> None:
        self._quiet_s = quiet_s
        self._last: dict[str, Stamp | None] = {}
        self._taken: dict[str, Stamp | None] = {}

    def look(self, sources: Sequence[Source], now_s: float) -> list[Source]:
        """Return the sources that are to be taken, at `now_s` seconds since the epoch.

        Those that are gone are forgotten. One that cannot be looked up (it may be gone again) waits for the next look.
        """
        stamps: dict[str, Stamp | None] = {}
        for source in sources:
            try:
                stamps[source.uri] = stamp(source)
            except SourceError:
                continue
        arrived = [each for each in sources if each.uri in stamps and self._is_new(each.uri, stamps[each.uri], now_s)]
        self._last = stamps
        self._taken = {uri: taken for uri, taken in self._taken.items() if uri in stamps}
        return arrived

    def take(self, sources: Sequence[Source]) -> None:
        """Note that sources were taken as they were at the last look."""
        self._taken |= {source.uri: self._last[source.uri] for source in sources}

    def _is_new(self, uri: str, now: Stamp | None, now_s: float) -> bool:
        if uri in self._taken and self._taken[uri] == now:
            return False
        if now is None or (uri in self._last and self._last[uri] == now):
            return True
        return not is_remote(uri) and now_s - int(now.mark) / 1e9 >= self._quiet_s


def watch_sources(
    config: IngestConfig,
    list_now: Callable[[], Sequence[Source]],
    uri: str,
    every_s: float,
    pause: Callable[[float], bool],
    on_round: Callable[[IngestReport], None],
    on_wait: Callable[[str], None] = lambda reason: None,
    watch: Watch = lambda progress: None,
) -> bool:
    """Ingest the sources that `list_now` lists into the library at `uri` as they arrive; True if none of them failed.

    After each round and each look `pause` is called with `every_s`; the watch ends when it returns True, and after a
    round that --fail-fast or --max-failures has stopped. `on_round` gets the report of each round that took something.
    A place that is empty or cannot be listed now, and a library that another run holds, are looked at again after the
    next pause; `on_wait` gets the reason, once for as long as it stays. Raises what `run_ingest` raises otherwise.
    """
    arrivals, all_well, waited_for = Arrivals(every_s), True, ""
    with _connection(config):
        while True:
            reason, report = "", None
            try:
                sources, reason = _listed(list_now)
                arrived = arrivals.look(sources, time.time())
                report = run_ingest(config, arrived, uri, watch) if arrived else None
                arrivals.take(arrived)
            except (SourceError, LibraryBusy) as error:
                reason = str(error)
            if reason and reason != waited_for:
                on_wait(reason)
            waited_for = reason
            if report is not None and report.outcomes:
                all_well &= not report.count("failed") and not report.stopped
                on_round(report)
            if (report is not None and report.stopped) or pause(every_s):
                return all_well


def _listed(list_now: Callable[[], Sequence[Source]]) -> tuple[Sequence[Source], str]:
    """List the sources; none where the place holds no video yet, and the reason."""
    try:
        return list_now(), ""
    except SourceMissing as error:
        return [], str(error)


def _connection(config: IngestConfig) -> AbstractContextManager[None]:
    """Hold one connection to Ray for all rounds, so that a cluster of this process's own starts once."""
    if not config.ray:
        return nullcontext()
    from jobs.ray_cluster import connected

    return connected(config.ray_address)
