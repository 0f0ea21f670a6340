"""Measure the coordinator of an ingest with simulated workers in virtual time: `kinodex bench coordinator`.

The coordinator, its commits, the refresh of the indexes and the tables are the real ones; videos and workers are
simulated (see jobs/bench/scale/simulated_workers.py). "Driver" is the CPU time of the coordinator's process without
that of the simulation. The clock of the workers goes on meanwhile, so a slow driver leaves them idle.

Four things are measured, each in a process of its own: runs over corpora of some sizes; the start of a run over sources
that the library knows already; one film on a few workers; and the end of a run that has one film of hours.
"""

from __future__ import annotations

import resource
import tempfile
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from index.embedding.space import Fingerprint
from index.library import Library
from jobs.bench.resource_usage import run_alone
from jobs.bench.scale.known_videos import add_known, known_source
from jobs.bench.scale.simulated_workers import Crew, Films, SimulatedExecutor, VirtualClock
from jobs.ingest.coordinator import Coordinator, RunLimits
from jobs.ingest.index_refresh import refreshing_indexes
from jobs.ingest.known_sources import IdSet, complete_ids, new_sources
from jobs.ingest.outcomes import Progress
from jobs.ingest.work_queue import WorkQueue
from pipeline.sampling.sample import IngestSettings
from pipeline.sources.source_list import SourceList

DIM = 8
BUNDLE = 8
TENTHS = 10
MARKS = 2000
"""Looks at the clock in a run, at most: a million would be most of what the driver holds."""
LAST = 0.01
"""The part of the sources that counts as the end of a run."""


@dataclass(frozen=True, slots=True)
class RunLoad:
    """A simulated run: `sources` files of about `length_s` seconds (lognormal), and one of `long_s` as the last."""

    sources: int
    crew: Crew
    length_s: float = 600.0
    spread: float = 0.5
    frames_a_second: float = 1.0
    duplicates: float = 0.0
    poison: float = 0.0
    deadly: float = 0.0
    long_s: float | None = None

    def films(self) -> Films:
        """Draw the corpus, always the same."""
        drawn = np.random.default_rng(0).lognormal(-(self.spread**2) / 2, self.spread, self.sources) * self.length_s
        if self.long_s is not None:
            drawn[-1] = self.long_s
        return Films(drawn, self.frames_a_second, self.duplicates, self.poison, self.deadly)


@dataclass(frozen=True, slots=True)
class RunFigures:
    """Figures of a simulated run.

    `driver_s` is CPU time of the driver, `run_s` virtual time; `tenths` are sources a second of the driver, by tenth of
    the sources; `idle` is the part of the workers' time in which they read nothing, 0 to 1, and `last_idle` that of the
    last `last_s` seconds, when all but `LAST` of the sources were done.
    """

    load: RunLoad
    counts: dict[str, int]
    driver_s: float
    run_s: float
    tenths: tuple[float, ...]
    idle: float
    last_s: float
    last_idle: float
    commits: int
    retried: int
    base_mb: float
    peak_mb: float


@dataclass(frozen=True, slots=True)
class StartFigures:
    """Figures of the start of a run over sources that the library knows: seconds of CPU and memory."""

    sources: int
    left_out: int
    cpu_s: float
    base_mb: float
    peak_mb: float


@dataclass(frozen=True, slots=True)
class CoordinatorFigures:
    """Figures of all that was measured."""

    runs: tuple[RunFigures, ...]
    starts: tuple[StartFigures, ...]
    one_film: RunFigures
    long_film: RunFigures


ONE_FILM = RunLoad(1, Crew(8, spread=0.05), 300.0, spread=0.0, frames_a_second=1.0)
LONG_FILM = RunLoad(500, Crew(64), 600.0, frames_a_second=0.02, long_s=5 * 3600.0)


def bench_coordinator(
    loads: Sequence[RunLoad],
    known: Sequence[int],
    report: Callable[[str], None] = lambda line: None,
    one_film: RunLoad = ONE_FILM,
    long_film: RunLoad = LONG_FILM,
) -> CoordinatorFigures:
    """Measure simulated runs, starts over so many known sources, and two schedules."""
    report(_HEAD)
    runs = []
    for load in loads:
        runs.append(run_alone(run_simulated, load))
        report(_line(runs[-1]))
    starts = [run_alone(start_over_known, count) for count in known]
    one, long = run_alone(run_simulated, one_film), run_alone(run_simulated, long_film)
    return CoordinatorFigures(tuple(runs), tuple(starts), one, long)


def run_simulated(load: RunLoad) -> RunFigures:
    """Run the coordinator over a corpus, into a library that is deleted again."""
    with _library() as library, library.lease("ingest", "kinodex bench coordinator") as lease:
        library.writer.note_rows()
        library.ingest_log.note_sources()
        before, base_mb = _versions(library), _peak_mb()
        films, clock = load.films(), VirtualClock()
        executor = SimulatedExecutor(library, films, load.crew, clock)
        sources = SourceList(films.source(number) for number in range(load.sources))
        work = WorkQueue(sources, films.sizes(), BUNDLE)
        limits = RunLimits(IngestSettings(), max_failures=None)
        marks: list[tuple[int, float, float]] = [(0, 0.0, clock())]

        def watch(progress: Progress) -> None:
            if progress.done - marks[-1][0] >= load.sources / MARKS or progress.done == load.sources:
                marks.append((progress.done, clock.driver_s, clock()))

        with refreshing_indexes(library.uri):
            coordinator = Coordinator(library, lease, executor, work, IdSet(), limits, [watch], clock)
            began_s = clock()
            coordinator.run()
        commits = _versions(library) - before - 2 * executor.appends
    done, driver_s, at_s = (np.array(column, np.float64) for column in zip(*marks, strict=True))
    last_s = float(np.interp(load.sources * (1 - LAST), done, at_s))
    return RunFigures(
        load=load,
        counts=dict(coordinator.totals.states),
        driver_s=float(driver_s[-1]),
        run_s=float(at_s[-1] - began_s),
        tenths=_rates(done, driver_s, load.sources),
        idle=_idle(executor.spans_s, began_s, float(at_s[-1]), load.crew.workers),
        last_s=float(at_s[-1]) - last_s,
        last_idle=_idle(executor.spans_s, last_s, float(at_s[-1]), load.crew.workers),
        commits=commits,
        retried=coordinator.retried,
        base_mb=base_mb,
        peak_mb=_peak_mb(),
    )


def start_over_known(count: int) -> StartFigures:
    """Measure how a run over `count` sources begins that its library knows all of; stamps come from a listing."""
    with _library() as library:
        add_known(library, count)
        sources = SourceList(known_source(number) for number in range(count))
        base_mb, began = _peak_mb(), time.process_time()
        new = new_sources(library, sources, complete_ids(library), check_content=False, retry_failed=False)
        return StartFigures(count, new.left_out, time.process_time() - began, base_mb, _peak_mb())


def table(figures: CoordinatorFigures) -> str:
    """Write the figures as Markdown, for people."""
    one, long = figures.one_film, figures.long_film
    starts = [
        f"start of a run over {each.sources:,} known sources: {each.cpu_s:.1f} s of CPU, memory {each.base_mb:,.0f} MB "
        f"with the list of sources, {each.peak_mb:,.0f} MB at its peak"
        for each in figures.starts
    ]
    return "\n".join(
        [
            "Simulation: real coordinator and tables; simulated workers and films, virtual time",
            "",
            _HEAD,
            *map(_line, figures.runs),
            "",
            *starts,
            f"one film of {one.load.length_s / 60:g} minutes on {one.load.crew.workers} workers: {one.run_s:.1f} s, "
            f"core use {1 - one.idle:.2f}",
            f"{long.load.sources:,} films, one of {(long.load.long_s or 0) / 3600:g} hours the last of the list, on "
            f"{long.load.crew.workers} workers: {long.run_s:,.0f} s; the last {LAST:.0%} of the sources take "
            f"{long.last_s / long.run_s:.1%} of that, workers idle {long.last_idle:.0%} then, {long.idle:.1%} in all",
        ]
    )


_HEAD = (
    "| sources | film s | workers | sources a driver second: all, first tenth, last tenth | workers idle | commits "
    "| retried | memory MB: before, peak | indexed, there, failed |\n|---|---|---|---|---|---|---|---|---|"
)


def _line(figures: RunFigures) -> str:
    load, counts = figures.load, figures.counts
    rates = ", ".join(f"{each:.0f}" for each in (load.sources / figures.driver_s, *figures.tenths[:: TENTHS - 1]))
    states = ", ".join(f"{counts.get(state, 0):,}" for state in ("indexed", "already there", "failed"))
    return (
        f"| {load.sources:,} | {load.length_s:g} | {load.crew.workers:,} | {rates} | {figures.idle:.1%} "
        f"| {figures.commits:,} | {figures.retried:,} | {figures.base_mb:,.0f}, {figures.peak_mb:,.0f} | {states} |"
    )


@contextmanager
def _library() -> Iterator[Library]:
    with tempfile.TemporaryDirectory(prefix="kinodex-bench-") as folder:
        fingerprint = Fingerprint("made-up", "0" * 12, "0" * 64, '{"size": 0}', DIM)
        yield Library.create(f"{folder}/library", {"fps": 1.0}, fingerprint)


def _rates(done: NDArray[np.float64], driver_s: NDArray[np.float64], sources: int) -> tuple[float, ...]:
    """Sources a second of the driver, by tenth of the sources."""
    at_s = np.interp(np.linspace(0, sources, TENTHS + 1), done, driver_s)
    return tuple((sources / TENTHS / np.maximum(np.diff(at_s), 1e-9)).tolist())


def _idle(spans_s: array[float], begin_s: float, end_s: float, workers: int) -> float:
    """Part of the workers' time between two times in which they read nothing."""
    spans = np.clip(np.array(spans_s).reshape(-1, 2), begin_s, end_s)
    busy_s = float((spans[:, 1] - spans[:, 0]).sum())
    return 1 - busy_s / max(workers * (end_s - begin_s), 1e-9)


def _versions(library: Library) -> int:
    """Sum the versions of all tables but that of the leases, which the clock renews."""
    return sum(library.tables.version(name) for name in library.tables.names() if name != "leases")


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
