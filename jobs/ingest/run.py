"""Run an ingest from end to end: lock the library, delete leftovers, read what is new, keep a report."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace

from kinodex.index.library import Library
from kinodex.index.spaces.model_names import absolute_name
from kinodex.index.store.indexes import refresh
from kinodex.index.store.leases import Lease
from kinodex.index.sweep import sweep
from kinodex.jobs.default_space import with_space
from kinodex.jobs.ingest.config import IngestConfig
from kinodex.jobs.ingest.coordinator import Coordinator, RunLimits
from kinodex.jobs.ingest.messages import Assignment
from kinodex.jobs.ingest.models import LoadedModels, load_models
from kinodex.jobs.ingest.new_sources import IdSet, NewSources, complete_ids, new_sources
from kinodex.jobs.ingest.refresh import refreshing_indexes
from kinodex.jobs.ingest.reports import IngestReport, Watch, utilisation
from kinodex.jobs.ingest.run_rows import LEASE, RUNNING, begun_report, run_row
from kinodex.jobs.ingest.work_queue import WorkQueue
from kinodex.jobs.towers.carried import lacks_towers, log_notes
from kinodex.pipeline.sandbox import SandboxLimits
from kinodex.pipeline.source import SILENCE_S, Source
from kinodex.pipeline.source_list import SourceList


def run_ingest(
    config: IngestConfig, sources: Sequence[Source], uri: str, watch: Watch = lambda progress: None
) -> IngestReport:
    """Index every source that the library at `uri` does not hold yet; bad ones become failure rows.

    Raises LibraryBusy if another ingest is writing it, a LibraryError as it comes, a SpaceError or UsageError before
    anything is read. What was complete before stays complete.
    """
    config = with_space(config, uri)
    given = None
    if config.metadata or config.path_pattern is not None:
        from kinodex.jobs.metadata.input import read_metadata
        from kinodex.jobs.metadata.update import set_metadata

        given = read_metadata(config.metadata, config.path_pattern)
    with ExitStack() as stack:
        served: Watch | None = None
        if config.metrics_port is not None:
            from kinodex.jobs.ingest.metrics import serve

            served = stack.enter_context(serve(config.metrics_host, config.metrics_port))
        models: LoadedModels | None = None
        library = _known_library(config, uri)
        if library is None:
            models = stack.enter_context(load_models(config, None))
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
                models = stack.enter_context(load_models(config, library))
                library.check_space(models.fingerprint)
            carried: Callable[[], list[str]] = models.begin_carrying(library.uri) if models is not None else list
            began = time.monotonic() - looked_s
            report = begun_report(config, library, new.left_out)
            library.ingest_log.add_run(run_row(report, RUNNING))
            if models is not None and new.sources:
                watches = [each for each in (served, models.watch, watch) if each is not None]
                report = _read_new(config, library, lease, models, new, complete, watches, report, began)
            log_notes(carried())
            if given:
                report = replace(report, metadata=asdict(set_metadata(library, given)))
            report = replace(report, seconds=time.monotonic() - began)
            refresh(library.tables)
            library.ingest_log.add_run(run_row(report, "stopped" if report.stopped else "done"))
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
    models: LoadedModels,
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
