"""An ingest from end to end: a library taken for writing, leftovers swept, what is new read, a report kept."""

from __future__ import annotations

import json
import os
import platform
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib.metadata import version

from index.embedding.names import everywhere
from index.embedding.space import Fingerprint
from index.library import Library
from index.rows import RunRow, SourceRow
from index.store.indexes import DURING_RUN
from index.store.leases import Lease
from jobs.errors import UsageError
from jobs.ingest.config import IngestConfig, library_settings
from jobs.ingest.coordinator import Coordinator, RunLimits, utilisation
from jobs.ingest.messages import Assignment, Executor
from jobs.ingest.outcomes import Progress, Report, summary
from jobs.tokenizer import fetch_or_note
from pipeline.errors import SourceError
from pipeline.sampling.sandbox import Limits
from pipeline.sampling.types import IngestSettings
from pipeline.sources.discover import Source, Stamp, stamp

LEASE = "ingest"
RUNNING = "running"
MOST_LOCAL_WORKERS = 16
REFRESH_EVERY_S = 600.0
MEASURED_WITH = ("kinodex", "av", "torch", "open_clip_torch", "lancedb", "pyarrow")

Watch = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class _Ready:
    """Those who will do the work: the fingerprint of their space, how they begin, and who else is told how it goes."""

    fingerprint: Fingerprint
    on_gpu: bool
    begin: Callable[[Assignment], AbstractContextManager[Executor]]
    watch: Watch | None = None


def run_ingest(
    config: IngestConfig, sources: Sequence[Source], uri: str, watch: Watch = lambda progress: None
) -> Report:
    """Index every source that the library at `uri` does not hold yet; bad ones become failure rows.

    Raises LibraryBusy if another ingest is writing it, a LibraryError (a full disk, say) as it comes, a SpaceError
    or UsageError before anything is read. What was complete before stays complete.
    """
    settings = config.settings()
    with _served(config) as served, _ready(config) as ready:
        watches = [each for each in (served, ready.watch, watch) if each is not None]
        library = Library.open_or_create(uri, library_settings(settings), ready.fingerprint)
        with library.lease(LEASE, "kinodex ingest") as lease:
            library.sweep()
            _close_broken_runs(library)
            report = _under_lease(config, settings, sources, library, lease, ready, watches)
            library.refresh()
            library.add_run(_run_row(report, "stopped" if report.stopped else "done"))
    return report


def _under_lease(
    config: IngestConfig,
    settings: IngestSettings,
    sources: Sequence[Source],
    library: Library,
    lease: Lease,
    ready: _Ready,
    watches: Sequence[Watch],
) -> Report:
    began, started_at = time.monotonic(), datetime.now(UTC)
    stamps = {source.uri: _stamp(source) for source in sources}
    before, held = library.sources(), library.video_ids()
    todo = [source for source in sources if not _is_known(source, stamps[source.uri], before, held, config)]
    assignment = Assignment(
        library_uri=library.uri,
        lease=(LEASE, lease.token),
        sampling=config.sampling(ready.fingerprint.preprocess, ready.on_gpu),
        limits=_limits(config),
        frames_a_commit=config.frames_a_commit,
    )
    report = Report(
        run_id=secrets.token_hex(8),
        started_at=started_at,
        seconds=0.0,
        outcomes=(),
        left_out=len(sources) - len(todo),
        settings=config.model_dump(mode="json") | {"space_digest": ready.fingerprint.digest},
        versions={name: version(name) for name in MEASURED_WITH} | {"python": platform.python_version()},
    )
    library.add_run(_run_row(report, RUNNING))
    if todo:
        with _kept_fresh(library.uri), ready.begin(assignment) as crew:
            bundle = max(1, min(config.bundle, len(todo) // (2 * crew.readers)))
            rules = RunLimits(settings, bundle, 0 if config.fail_fast else config.max_failures)
            coordinator = Coordinator(library, lease, crew, todo, stamps, rules, watches)
            coordinator.run()
            report = _with_figures(report, coordinator, crew, time.monotonic() - began)
    return replace(report, seconds=time.monotonic() - began)


def _with_figures(report: Report, coordinator: Coordinator, crew: Executor, wall_s: float) -> Report:
    return replace(
        report,
        outcomes=coordinator.outcomes,
        stopped=coordinator.stopped,
        seconds_by_stage={stage: round(seconds, 3) for stage, seconds in sorted(coordinator.seconds.items())},
        utilisation={name: round(part, 3) for name, part in utilisation(coordinator.seconds, crew, wall_s).items()},
        workers=crew.readers,
        embedders=crew.embedders,
        retried=coordinator.retried,
        fell_back=dict(coordinator.fell_back),
    )


@contextmanager
def _kept_fresh(uri: str) -> Iterator[None]:
    """Keep indexes up to date beside a long run, so that what is shown already is quick to search.

    What goes wrong there is raised at the end of the run: it loses no row.
    """
    over = threading.Event()

    def refresh() -> None:
        while not over.wait(REFRESH_EVERY_S):
            Library.open(uri).refresh(DURING_RUN)

    with ThreadPoolExecutor(1, "refresh") as pool:
        refreshing = pool.submit(refresh)
        try:
            yield
        finally:
            over.set()
    refreshing.result()


def _served(config: IngestConfig) -> AbstractContextManager[Watch | None]:
    """The endpoint for Prometheus, if one is wanted."""
    if config.metrics_port is None:
        return nullcontext()
    from jobs.ingest.metrics import served

    return served(config.metrics_host, config.metrics_port)


@contextmanager
def _ready(config: IngestConfig) -> Iterator[_Ready]:
    """Those who will embed, here or on Ray, with the model loaded."""
    if not config.ray:
        import torch

        from index.embedding.space import fetch_tokenizer, load_space
        from jobs.ingest.local_executor import local_executor

        space = load_space(config.space, device=config.device, towers="image")
        fetch_or_note(partial(fetch_tokenizer, config.space))
        if config.decoder == "nvdec" and space.device_type == "cpu" != config.device:
            raise UsageError("got --decoder nvdec, and this machine has no GPU; use --decoder auto")
        cores = len(os.sched_getaffinity(0))
        workers = config.workers or min(cores, MOST_LOCAL_WORKERS)
        torch.set_num_threads(max(cores // workers, 1))  # every worker embeds for itself, with its share of the cores

        def begin(assignment: Assignment) -> AbstractContextManager[Executor]:
            return local_executor(assignment, workers, space.embed, space.device_type)

        yield _Ready(space.fingerprint, space.device_type == "cuda", begin)
        return
    from jobs.ingest.metrics import fed_to_ray
    from jobs.ingest.ray_embedders import Sizes
    from jobs.ingest.ray_executor import ray_executor
    from jobs.ray_cluster import connected

    sizes = Sizes(config.workers, config.embedders, config.cpus_per_worker, config.gpus_per_embedder)
    name = everywhere(config.space)
    with connected(config.ray_address), ray_executor(name, config.device, sizes, config.decoder) as crew:
        fingerprint = crew.fingerprint()
        fetch_or_note(crew.fetch_tokenizer)
        yield _Ready(fingerprint, crew.is_on_gpu, crew.begin, fed_to_ray())


def _stamp(source: Source) -> Stamp | None:
    try:
        return stamp(source)
    except SourceError:
        return None  # reading it will meet the same, and say so in a failure row


def _is_known(
    source: Source, now: Stamp | None, before: Mapping[str, SourceRow], held: Set[str], config: IngestConfig
) -> bool:
    """Whether an unchanged source has had its outcome: its video is complete, or it failed and is not to be retried."""
    row = before.get(source.uri)
    if config.check_content or row is None or now is None or (row.size_bytes, row.stamp) != (now.size_bytes, now.mark):
        return False
    return row.video_id in held if row.video_id else not config.retry_failed


def _limits(config: IngestConfig) -> Limits:
    return Limits(
        base_s=config.video_base_s,
        per_video_s=config.video_rate,
        silence_s=config.silence_s,
        memory_bytes=config.video_memory_mb * 1_000_000,
    )


def _run_row(report: Report, state: str) -> RunRow:
    ended = None if state == RUNNING else report.started_at + timedelta(seconds=report.seconds)
    told = json.loads(json.dumps(summary(report), default=str))
    return RunRow(report.run_id, LEASE, state, report.started_at, ended, told)


def _close_broken_runs(library: Library) -> None:
    """Say of runs that were killed that they are over; whoever holds the lease knows it."""
    for run in library.runs():
        if run.kind == LEASE and run.state == RUNNING:
            library.add_run(replace(run, state="interrupted"))
