"""Run an ingest from end to end: lock the library, delete leftovers, read what is new, keep a report."""

from __future__ import annotations

import json
import os
import platform
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from kinodex.index.errors import LibraryBusy, TowersDamaged
from kinodex.index.library import Library
from kinodex.index.rows import RunRow
from kinodex.index.spaces.fingerprint import Fingerprint
from kinodex.index.spaces.image_tower import ImageTower
from kinodex.index.spaces.model_names import absolute_name
from kinodex.index.store.indexes import DURING_RUN, clean, refresh
from kinodex.index.store.leases import Lease
from kinodex.index.store.places import is_local
from kinodex.index.sweep import sweep
from kinodex.jobs.errors import UsageError
from kinodex.jobs.ingest.commit import IngestReport, Watch, summary, utilisation
from kinodex.jobs.ingest.config import IngestConfig
from kinodex.jobs.ingest.coordinator import Coordinator, RunLimits
from kinodex.jobs.ingest.messages import Assignment, Executor, WorkQueue
from kinodex.jobs.ingest.sources import IdSet, NewSources, complete_ids, new_sources
from kinodex.jobs.library import fetch_or_note, none_drawn
from kinodex.jobs.towers import begin_carrying, lacks_towers, load_embedder, log_notes
from kinodex.pipeline.errors import NotDrawn, SourceError, SourceMissing
from kinodex.pipeline.filesystems import is_remote
from kinodex.pipeline.sandbox import SandboxLimits
from kinodex.pipeline.source import SILENCE_S, Source, Stamp
from kinodex.pipeline.source_list import SourceList
from kinodex.pipeline.stamps import stamp

LEASE = "ingest"
RUNNING = "running"
MOST_LOCAL_WORKERS = 16
MEASURED_WITH = ("kinodex", "av", "torch", "open_clip_torch", "onnxruntime", "pylance", "pyarrow")


def run_ingest(
    config: IngestConfig, sources: Sequence[Source], uri: str, watch: Watch = lambda progress: None
) -> IngestReport:
    """Index every source that the library at `uri` does not hold yet; bad ones become failure rows.

    Raises LibraryBusy if another ingest is writing it, a LibraryError as it comes, a SpaceError or UsageError before
    anything is read. What was complete before stays complete.
    """
    given = None
    if config.metadata or config.path_pattern is not None:
        from kinodex.jobs.metadata import read_metadata, set_metadata

        given = read_metadata(config.metadata, config.path_pattern)
    with ExitStack() as stack:
        served: Watch | None = None
        if config.metrics_port is not None:
            from kinodex.jobs.ingest.metrics import serve

            served = stack.enter_context(serve(config.metrics_host, config.metrics_port))
        models: _Models | None = None
        library = _known_library(config, uri)
        is_new = library is None and not Library.exists(uri)
        if library is None:
            models = stack.enter_context(_load_models(config, None))
            library = Library.open_or_create(uri, asdict(config.settings()), models.fingerprint)
        if given:
            given.check(library)
        with library.lease(LEASE, "kinodex ingest") as lease:
            library.writer.note_rows()  # before the sweep, so that it misses none
            library.ingest_log.note_sources()
            sweep(library)
            for run in library.ingest_log.runs():  # the lease is held: no other run goes on
                if run.kind == LEASE and run.state == RUNNING:
                    library.ingest_log.add_run(replace(run, state="interrupted"))
            began = time.monotonic()
            complete = complete_ids(library)
            if config.source_timeout_s != SILENCE_S:
                sources = SourceList(replace(source, timeout_s=config.source_timeout_s) for source in sources)
            new = new_sources(library, sources, complete, config.check_content, config.retry_failed)
            looked_s = time.monotonic() - began
            # A run that finds nothing new needs no model, which takes seconds to load, nor a cluster.
            if models is None and (new.sources or lacks_towers(library, library.fingerprint, config.towers)):
                models = stack.enter_context(_load_models(config, library))
                library.check_space(models.fingerprint)
            carried: Callable[[], list[str]] = models.begin_carrying(library.uri) if models is not None else list
            began = time.monotonic() - looked_s
            report = _begun_report(config, library, new.left_out)
            library.ingest_log.add_run(_run_row(report, RUNNING))
            if models is not None and new.sources:
                watches = [each for each in (served, models.watch, watch) if each is not None]
                report = _read_new(config, library, lease, models, new, complete, watches, report, began)
            log_notes(carried())
            if given:
                report = replace(report, metadata=asdict(set_metadata(library, given)))
            report = replace(report, seconds=time.monotonic() - began)
            refresh(library.tables)
            library.ingest_log.add_run(_run_row(report, "stopped" if report.stopped else "done"))
        if is_new and NotDrawn.__name__ in report.numbers.failures and not library.count_videos():
            if is_local(library.uri):
                shutil.rmtree(library.uri)
            undrawn = (each for each in report.outcomes if each.error_class == NotDrawn.__name__)
            raise none_drawn(Path(each.uri).name for each in undrawn)
    if config.cuts == "exact":
        from kinodex.jobs.add.run import add
        from kinodex.jobs.add.stages import Shots

        add(library, Shots())
    return report


def _known_library(config: IngestConfig, uri: str) -> Library | None:
    """Open the library at `uri` if there is one and its space has the name of the run's; raises SettingsMismatch."""
    library = Library.open(uri) if Library.exists(uri) else None
    if library is None or library.fingerprint.name != absolute_name(config.space):
        return None
    library.check_settings(asdict(config.settings()))
    return library


def _read_new(
    config: IngestConfig,
    library: Library,
    lease: Lease,
    models: _Models,
    new: NewSources,
    complete: IdSet,
    watches: Sequence[Watch],
    report: IngestReport,
    began: float,
) -> IngestReport:
    """Read the new sources, under the run's lease; returns the report with what became of them."""
    assignment = Assignment(
        library_uri=library.uri,
        lease=(LEASE, lease.token),
        sampling=config.sampling(models.fingerprint.preprocess, models.on_gpu),
        limits=SandboxLimits(
            base_s=config.video_base_s,
            per_video_s=config.video_rate,
            silence_s=config.silence_s,
            memory_bytes=config.video_memory_mb * 1_000_000,
        ),
        frames_a_commit=config.frames_a_commit,
        allow_playlists=config.allow_playlists,
        fill_batches=models.fill_batches,
    )
    limits = RunLimits(config.settings(), 0 if config.fail_fast else config.max_failures)
    work = WorkQueue(new.sources, new.sizes, config.bundle)
    with refreshing_indexes(library.uri), models.start_workers(assignment) as executor:
        coordinator = Coordinator(library, lease, executor, work, complete, limits, watches)
        coordinator.run()
        busy = utilisation(coordinator.seconds, executor.readers, executor.embedders, time.monotonic() - began)
        return replace(
            report,
            outcomes=coordinator.outcomes,
            totals=coordinator.totals,
            stopped=coordinator.stopped,
            seconds_by_stage={stage: round(seconds, 3) for stage, seconds in sorted(coordinator.seconds.items())},
            utilisation={name: round(part, 3) for name, part in busy.items()},
            workers=executor.readers,
            embedders=executor.embedders,
            retried=coordinator.retried,
            fell_back=dict(coordinator.fell_back),
            arithmetic=models.arithmetic(),
        )


# The model, here or on a cluster.


@dataclass(frozen=True, slots=True)
class _Models:
    """Models that are loaded: the fingerprint of their space, the start of workers for them, and another watch."""

    fingerprint: Fingerprint
    on_gpu: bool
    start_workers: Callable[[Assignment], AbstractContextManager[Executor]]
    begin_carrying: Callable[[str], Callable[[], list[str]]]
    arithmetic: Callable[[], str]
    watch: Watch | None = None
    fill_batches: bool = True


def _load_models(config: IngestConfig, library: Library | None) -> AbstractContextManager[_Models]:
    return _load_on_ray(config) if config.ray else _load_here(config, library)


@contextmanager
def _load_here(config: IngestConfig, library: Library | None) -> Iterator[_Models]:
    """Load the model in this process; it computes with a worker's share of the cores until the end."""
    from kinodex.index.spaces.space import Space, fetch_tokenizer
    from kinodex.jobs.ingest.worker import local_executor

    space = load_embedder(config.space, config.device, library)
    if not config.text_tower and isinstance(space, Space):  # else it came with the export
        fetch_or_note(partial(fetch_tokenizer, config.space))
    if config.decoder == "nvdec" and space.device_type == "cpu" != config.device:
        raise UsageError("got --decoder nvdec, and this machine has no GPU; use --decoder auto")
    cores = len(os.sched_getaffinity(0))
    workers = config.workers or min(cores, MOST_LOCAL_WORKERS)

    def start_workers(assignment: Assignment) -> AbstractContextManager[Executor]:
        if isinstance(space, ImageTower):  # beside the start of the decoders
            threading.Thread(target=_warm, args=(space,), daemon=True).start()
        return local_executor(assignment, workers, space.embed, space.device_type)

    def carry(uri: str) -> Callable[[], list[str]]:
        return begin_carrying(uri, space.fingerprint, config.towers)

    with space.threads(max(cores // workers, 1)):  # every worker embeds for itself
        on_gpu, varies = space.device_type == "cuda", not isinstance(space, ImageTower)
        yield _Models(space.fingerprint, on_gpu, start_workers, carry, lambda: space.arithmetic, fill_batches=varies)


def _warm(tower: ImageTower) -> None:
    with suppress(TowersDamaged):  # the first batch raises it
        tower.warm()


@contextmanager
def _load_on_ray(config: IngestConfig) -> Iterator[_Models]:
    """Load the model in actors of a cluster."""
    from kinodex.jobs.ingest.metrics import ray_watch
    from kinodex.jobs.ingest.ray import Sizes, ray_executor
    from kinodex.jobs.workers import connected

    sizes = Sizes(config.workers, config.embedders, config.cpus_per_worker, config.gpus_per_embedder)
    name = absolute_name(config.space)
    with connected(config.ray_address), ray_executor(name, config.device, sizes, config.decoder) as executor:
        ask = executor.ask_embedder
        fingerprint: Fingerprint = ask("fingerprint")
        if not config.text_tower:
            fetch_or_note(partial(ask, "fetch_tokenizer"))

        def carry(uri: str) -> Callable[[], list[str]]:
            ask("begin_carrying", uri, config.towers)
            return partial(ask, "carried", uri, config.towers)

        arithmetic = partial(ask, "arithmetic")
        yield _Models(fingerprint, executor.is_on_gpu, executor.start_workers, carry, arithmetic, ray_watch())


# The report of a run, kept in the library.


def _begun_report(config: IngestConfig, library: Library, left_out: int) -> IngestReport:
    versions = {"python": platform.python_version()}
    for name in MEASURED_WITH:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return IngestReport(
        run_id=secrets.token_hex(8),
        started_at=datetime.now(UTC),
        seconds=0.0,
        outcomes=(),
        left_out=left_out,
        settings=config.model_dump(mode="json") | {"space_digest": library.fingerprint.digest},
        versions=versions,
    )


def _run_row(report: IngestReport, state: str) -> RunRow:
    ended = None if state == RUNNING else report.started_at + timedelta(seconds=report.seconds)
    numbers = json.loads(json.dumps(summary(report), default=str))
    return RunRow(report.run_id, LEASE, state, report.started_at, ended, numbers)


# Keep the indexes and files of a library in order beside a run that writes it.

LOOK_EVERY_S = 10.0
"""Seconds between two looks at the numbers of rows and fragments, which alone decide what is done."""
CLEAN_EVERY_S = 1800.0
"""Seconds between two deletions of old states, each of which reads the list of files of every state there is."""


@contextmanager
def refreshing_indexes(uri: str, look_every_s: float = LOOK_EVERY_S) -> Iterator[None]:
    """Refresh indexes within this block, so that shown videos are quick to search; an error is raised at its end."""
    over = threading.Event()

    def keep_fresh() -> None:
        tables, cleaned = Library.open(uri).tables, time.monotonic()
        tables.limit_caches()
        while not over.wait(look_every_s):
            refresh(tables, DURING_RUN)
            if time.monotonic() - cleaned > CLEAN_EVERY_S:
                clean(tables, DURING_RUN)
                cleaned = time.monotonic()

    with ThreadPoolExecutor(1, "refresh") as pool:
        refreshed = pool.submit(keep_fresh)
        try:
            yield
        finally:
            over.set()
    refreshed.result()


# Ingest what arrives in a place, round after round, until it is stopped: `kinodex ingest --watch`.
#
# The place is looked at every few seconds. What is new or changed since it was last taken, and no longer being written,
# is one round: an ingest of its own, which holds the library's lease for that long and no longer. So other ingests and
# `kinodex maintain` have their turn between two rounds.


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
            from kinodex.jobs.workers import connected

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
