"""Ingest of what arrives in a place, round after round, until it is stopped: `kinodex ingest --watch`.

The place is looked at every few seconds. What is new or changed since it was last taken, and no longer being written,
is one round: an ingest of its own, which holds the library's lease for that long and no longer. So other ingests and
`kinodex maintain` have their turn between two rounds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress

from kinodex.index.errors import LibraryBusy
from kinodex.jobs.ingest.config import IngestConfig
from kinodex.jobs.ingest.reports import IngestReport, Watch
from kinodex.jobs.ingest.run import run_ingest
from kinodex.pipeline.errors import SourceError, SourceMissing
from kinodex.pipeline.filesystems import is_remote
from kinodex.pipeline.source import Source, Stamp
from kinodex.pipeline.stamps import stamp


class Arrivals:
    """Sources of a place from look to look: which of them have arrived, and which were taken already.

    A source has arrived if its size and time of change are those of the last look, or, of a local file, if it was last
    changed `quiet_s` seconds ago. One without a stamp is taken once.
    """

    def __init__(self, quiet_s: float) -> None:
        self._quiet_s = quiet_s
        self._last: dict[str, Stamp | None] = {}
        self._taken: dict[str, Stamp | None] = {}

    def look(self, sources: Sequence[Source], now_s: float) -> list[Source]:
        """Return the sources that are to be taken, at `now_s` seconds since the epoch; forget those that are gone."""
        stamps: dict[str, Stamp | None] = {}
        for source in sources:
            with suppress(SourceError):  # it may be gone again: it waits for the next look
                stamps[source.uri] = stamp(source)
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

    After each look `pause` is called with `every_s`; the watch ends when it returns True, and after a round that
    --fail-fast or --max-failures has stopped. `on_round` gets the report of each round that took something. A place
    that is empty or cannot be listed now, and a library that another run holds, are looked at again after the next
    pause; `on_wait` gets the reason, once for as long as it stays.
    """
    arrivals, all_well, waited_for = Arrivals(every_s), True, ""
    with ExitStack() as stack:
        if config.ray:  # one connection for all rounds, so that a cluster of this process's own starts once
            from kinodex.jobs.ray_cluster import connected

            stack.enter_context(connected(config.ray_address))
        while True:
            reason, report = "", None
            try:
                try:
                    sources = list_now()
                except SourceMissing as error:  # the place holds no video yet
                    sources, reason = [], str(error)
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
