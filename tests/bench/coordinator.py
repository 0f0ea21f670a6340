"""Measure the coordinator of an ingest with simulated workers in virtual time: `python -m tests.bench.coordinator`.

The coordinator, its commits, the refresh of the indexes and the tables are the real ones; videos and workers are
simulated (`SimulatedExecutor`). "Driver" is the CPU time of the coordinator's process without that of the simulation.
The clock of the workers goes on meanwhile, so a slow driver leaves them idle. Each run is a process of its own.
"""

from __future__ import annotations

import hashlib
import heapq
import resource
import tempfile
import time
from array import array
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from typing import Annotated, NamedTuple

import numpy as np
import pyarrow as pa
import typer
from numpy.typing import NDArray

from kinodex.bench.ingest import run_alone
from kinodex.bench.search import MadeFrame
from kinodex.index.library import Library
from kinodex.index.spaces.towers import Fingerprint
from kinodex.jobs.ingest.commit import Progress
from kinodex.jobs.ingest.coordinator import Coordinator, RunLimits
from kinodex.jobs.ingest.messages import (
    ChunkFailed,
    ChunkRead,
    ChunkResult,
    ChunkSplit,
    FinishedTask,
    Identify,
    IdentifyDone,
    IdleWorkers,
    Read,
    Task,
    WorkDone,
    WorkQueue,
)
from kinodex.jobs.ingest.run import refreshing_indexes
from kinodex.jobs.ingest.sources import IdSet, complete_ids, new_sources
from kinodex.pipeline.decoding.open import span_count
from kinodex.pipeline.decoding.stream import Span, VideoMetadata
from kinodex.pipeline.fetch import FetchedVideo, Source, Stamp
from kinodex.pipeline.sample import Chunk, ChunkSummary, IngestSettings
from kinodex.pipeline.sources import SourceList

# Simulated workers of an ingest in virtual time: an executor for the real coordinator, without any video.
#
# The clock stands still while the simulation computes, runs as the CPU time of this process while the coordinator
# works, and skips what it would have waited. Workers read films at set speeds; some tasks are slow, some workers are
# lost, some films have the bytes of another, some cannot be read, and some take their worker down each time. The rows
# of the frames that a finished task promises are really appended.

TICKS_A_SECOND = 1000
GROUP_S = 2.0
"""Distance of key frames, where alone a film can be split."""
OPEN_S = 0.1
"""Time to open a film and decode its first frame, for a whole one and for each part: twice what was measured."""
DEMUX_RATE = 4000.0
"""Seconds of a film that are demuxed in a second, to split it. This and the next three as measured, at 720p."""
HASH_BYTES_S = 1.3e9
READ_RATE = 14.0
"""Seconds of a film that a worker decodes, embeds and writes in a second."""
BYTES_A_SECOND = 340_000
RESTART_S = 15.0
SLOWNESS = 10.0
ROWS_A_COMMIT = 200_000
_METADATA = VideoMetadata(
    container="mov",
    stream_index=0,
    codec="none",
    pix_fmt="yuv420p",
    width_px=1280,
    height_px=720,
    sample_aspect_ratio=1.0,
    rotation_deg=0,
    fps=25.0,
    claimed_duration_s=None,
    interlaced=False,
    has_audio=False,
)


@dataclass(frozen=True, slots=True)
class Films:
    """A corpus. `lengths_s` `[n]`; shares from 0 to 1 of its files: copies, unreadable ones, deadly ones.

    A film has `frames_a_second` stored frames for each second, at least one.
    """

    lengths_s: NDArray[np.float64]
    frames_a_second: float = 1.0
    duplicates: float = 0.0
    poison: float = 0.0
    deadly: float = 0.0

    def source(self, number: int) -> Source:
        """The file of this number."""
        size_bytes = int(self.lengths_s[self.original(number)] * BYTES_A_SECOND)
        return Source(f"/simulated/films/{number:08d}.mp4", f"film {number}", stamp=Stamp(size_bytes, str(number)))

    def sizes(self) -> NDArray[np.int64]:
        """Bytes of all files."""
        lengths_s = np.array([self.lengths_s[self.original(number)] for number in range(len(self.lengths_s))])
        return (lengths_s * BYTES_A_SECOND).astype(np.int64)

    def original(self, number: int) -> int:
        """Number of the film whose bytes this file has."""
        return number // 2 if number and _share(number, 0) < self.duplicates else number

    def fate(self, number: int) -> str:
        """Reading it is "poison" (an error), "deadly" (its worker dies) or "good"."""
        drawn = _share(number, 1)
        return "poison" if drawn < self.poison else "deadly" if drawn < self.poison + self.deadly else "good"


@dataclass(frozen=True, slots=True)
class Crew:
    """Workers: seconds of film that one reads in a second, and shares of tasks that are slow or lose their worker.

    `spread` is how much their speeds differ: the standard deviation of a lognormal.
    """

    workers: int
    speed: float = READ_RATE
    spread: float = 0.2
    slow: float = 0.0
    lost: float = 0.0
    cut_s: float = 300.0


class _Event(NamedTuple):
    at_s: float
    order: int
    worker: int
    task: Task | None
    """None: a worker begins."""
    is_lost: bool = False


class VirtualClock:
    """Seconds of virtual time: the CPU time of this process outside `paused`, and what was skipped."""

    def __init__(self) -> None:
        self._skipped_s = 0.0
        self._paused_s = 0.0
        self._began = time.process_time()
        self._pause_began: float | None = None

    def __call__(self) -> float:
        """Return the time."""
        return self.driver_s + self._skipped_s

    @property
    def driver_s(self) -> float:
        """CPU time of this process outside `paused`."""
        now = time.process_time() if self._pause_began is None else self._pause_began
        return now - self._began - self._paused_s

    def skip_to(self, at_s: float) -> None:
        """Move on to a later time."""
        self._skipped_s += max(0.0, at_s - self())

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Let no time pass."""
        self._pause_began = time.process_time()
        try:
            yield
        finally:
            self._paused_s += time.process_time() - self._pause_began
            self._pause_began = None


class SimulatedExecutor:
    """Executor of a crew that reads films; see jobs/ingest/messages.py. `spans_s` are begin and end of each read."""

    def __init__(self, library: Library, films: Films, crew: Crew, clock: VirtualClock) -> None:
        self._library, self._films, self._crew, self._clock = library, films, crew, clock
        self._idle, self._random, self._order = IdleWorkers(), np.random.default_rng(0), count()
        self._events: list[_Event] = []
        self._running: dict[int, dict[int, Task]] = defaultdict(dict)
        self._workers = count()
        self._speeds: dict[int, float] = {}
        self._frames = _made_up_frames(library)
        self._unwritten: dict[int, Read] = {}
        self.appends = 0
        self.spans_s = array("d")
        self.embedders = 1
        for _ in range(crew.workers):
            self._join()

    @property
    def readers(self) -> int:
        return max(len(self._idle), 1)

    @property
    def capacity(self) -> int:
        return self.readers

    def idle(self, kind: type[Task]) -> Collection[int]:
        return self._idle.of(kind)

    def forget(self, video: FetchedVideo) -> None:
        """Nothing to do: nothing was fetched."""

    def counts(self) -> tuple[int, float]:
        return 0, 0.0

    def start(self, worker: int, task: Task) -> None:
        with self._clock.paused():
            self._idle.start(worker, task)
            takes_s = self._seconds(task) / self._speeds[worker]
            takes_s *= SLOWNESS if self._random.random() < self._crew.slow else 1.0
            is_lost = self._random.random() < self._crew.lost or self._is_deadly(task)
            now, order = self._clock(), next(self._order)
            self._running[worker][order] = task
            if isinstance(task, Read):
                self.spans_s.extend((now, now + takes_s))
                if not is_lost:
                    self._unwritten[order] = task
            heapq.heappush(self._events, _Event(now + takes_s, order, worker, task, is_lost))

    def wait(self, timeout_s: float) -> list[FinishedTask]:
        with self._clock.paused():
            until = self._clock() + timeout_s
            until = min(until, self._events[0].at_s) if self._events else until
            self._clock.skip_to(until)
            now = max(until, self._clock())
            finished: list[FinishedTask] = []
            while self._events and self._events[0].at_s <= now:
                finished += self._end(heapq.heappop(self._events))
            return finished

    def _end(self, event: _Event) -> list[FinishedTask]:
        if event.task is None:
            self._join()
            return []
        if event.order not in self._running[event.worker]:
            return []  # its worker was lost over another task
        if event.is_lost:
            self._idle.leave(event.worker)
            heapq.heappush(self._events, _Event(event.at_s + RESTART_S, next(self._order), -1, None))
            lost = self._running.pop(event.worker)
            for order in lost:
                self._unwritten.pop(order, None)
            return [FinishedTask(event.worker, task, None) for task in lost.values()]
        if event.order in self._unwritten:
            self._append(list(self._unwritten.values()))
            self._unwritten.clear()
        del self._running[event.worker][event.order]
        self._idle.end(event.worker, event.task)
        return [FinishedTask(event.worker, event.task, self._result(event.task))]

    def _join(self) -> None:
        worker = next(self._workers)
        self._speeds[worker] = float(np.exp(self._random.normal(0.0, self._crew.spread)))
        self._idle.join(worker)

    def _result(self, task: Task) -> IdentifyDone | WorkDone:
        if isinstance(task, Identify):
            return IdentifyDone(tuple(self._identified(source) for source in task.sources), {"fetch": 0.0})
        return WorkDone(tuple(self._read(task, chunk) for chunk in task.chunks), {"decode": 0.0})

    def _identified(self, source: Source) -> FetchedVideo:
        number = self._films.original(_number(source))
        video_id = hashlib.blake2b(number.to_bytes(8), digest_size=16).hexdigest()
        size_bytes = source.stamp.size_bytes if source.stamp else 0
        return FetchedVideo(source, source.uri, video_id, size_bytes)

    def _read(self, task: Read, chunk: Chunk) -> ChunkResult:
        number, length_s = self._film(chunk)
        if self._films.fate(number) == "poison":
            message = f"{chunk.video.source.uri}: moov atom not found; make the file again"
            return ChunkFailed(chunk, "open", "NotAVideo", message)
        if task.may_split and len(spans := self._split(chunk, task.sharers)) > 1:
            return ChunkSplit(chunk, spans)
        begin, until = self._frame_range(chunk)
        times = np.arange(float(begin), float(until)) / self._films.frames_a_second
        ends = np.stack([self._frames[0].vector, self._frames[0].vector])
        summary = ChunkSummary(_METADATA, 0.0, length_s, 0, (), (), {}, "pyav")
        return ChunkRead(chunk, summary, times, np.full(max(until - begin - 1, 0), 0.1), ends, {})

    def _split(self, chunk: Chunk, sharers: int) -> tuple[Span, ...]:
        """Split as `kinodex.pipeline.decoding.open` would: at key frames, into equal parts as near as may be."""
        _, length_s = self._film(chunk)
        number = max(span_count(length_s, sharers), int(length_s / self._crew.cut_s + 0.5), 1)
        starts = [round(length_s * part / number / GROUP_S) * GROUP_S for part in range(number)]
        rate = self._films.frames_a_second
        bounds = [(round(at * TICKS_A_SECOND), int(np.ceil(at * rate))) for at in sorted(set(starts))]
        ends: list[tuple[int | None, int | None]] = [*bounds[1:], (None, None)]
        return tuple(Span(a, c, b, d) for (a, b), (c, d) in zip(bounds, ends, strict=True))

    def _seconds(self, task: Task) -> float:
        """Time that a task takes a worker of common speed."""
        if isinstance(task, Identify):
            sizes = [source.stamp.size_bytes for source in task.sources if source.stamp]
            return 0.01 * len(task.sources) + sum(sizes) / HASH_BYTES_S
        return sum(self._read_seconds(task, chunk) for chunk in task.chunks)

    def _read_seconds(self, task: Read, chunk: Chunk) -> float:
        number, length_s = self._film(chunk)
        if self._films.fate(number) == "poison":
            return OPEN_S
        if chunk.span is not None:
            end = length_s if chunk.span.until_pts is None else chunk.span.until_pts / TICKS_A_SECOND
            return OPEN_S + (end - chunk.span.first_pts / TICKS_A_SECOND) / self._crew.speed
        if task.may_split and len(self._split(chunk, task.sharers)) > 1:
            return OPEN_S + length_s / DEMUX_RATE
        return OPEN_S + length_s / self._crew.speed

    def _is_deadly(self, task: Task) -> bool:
        return isinstance(task, Read) and any(self._films.fate(self._film(each)[0]) == "deadly" for each in task.chunks)

    def _film(self, chunk: Chunk) -> tuple[int, float]:
        number = self._films.original(_number(chunk.video.source))
        return number, float(self._films.lengths_s[number])

    def _frame_range(self, chunk: Chunk) -> tuple[int, int]:
        _, length_s = self._film(chunk)
        first = chunk.span.first_number if chunk.span else 0
        until = chunk.span.until_number if chunk.span else None
        return first, max(1, int(np.ceil(length_s * self._films.frames_a_second))) if until is None else until

    def _append(self, tasks: Sequence[Read]) -> None:
        """Append the rows of tasks that some worker has or had, as their workers would have, in fewer commits."""
        rows: dict[str, list[MadeFrame]] = defaultdict(list)
        waiting, rate = 0, self._films.frames_a_second
        for chunk in (chunk for task in tasks for chunk in task.chunks if self._has_rows(task, chunk)):
            begin, until = self._frame_range(chunk)
            made_up = (self._frames[number % len(self._frames)] for number in range(begin, until))
            rows[chunk.video.video_id] += [
                frame._replace(frame_no=number, time_s=number / rate) for number, frame in enumerate(made_up, begin)
            ]
            waiting += until - begin
            if waiting >= ROWS_A_COMMIT:
                self._write(rows)
                rows, waiting = defaultdict(list), 0
        self._write(rows)

    def _write(self, rows: dict[str, list[MadeFrame]]) -> None:
        if rows:
            self._library.writer.add_frames(rows)
            self.appends += 1

    def _has_rows(self, task: Read, chunk: Chunk) -> bool:
        is_split = task.may_split and len(self._split(chunk, task.sharers)) > 1
        return self._films.fate(self._film(chunk)[0]) == "good" and not is_split


def _made_up_frames(library: Library) -> list[MadeFrame]:
    random = np.random.default_rng(0)
    vectors = random.standard_normal((256, library.fingerprint.dim))
    units = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float16)
    return [MadeFrame(n, float(n), b"jpeg", unit, 16, 9) for n, unit in enumerate(units)]


def _number(source: Source) -> int:
    return int(source.uri[-12:-4])


def _share(number: int, salt: int) -> float:
    """A number in [0, 1) that looks random and is always the same."""
    return int.from_bytes(hashlib.blake2b(f"{number} {salt}".encode(), digest_size=4).digest()) / 2**32


DIM = 8
BUNDLE = 8
TENTHS = 10
MARKS = 2000
"""Looks at the clock in a run, at most: a million would be most of what the driver holds."""


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
    the sources; `idle` is the part of the workers' time in which they read nothing, 0 to 1.
    """

    load: RunLoad
    counts: dict[str, int]
    driver_s: float
    run_s: float
    tenths: tuple[float, ...]
    idle: float
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


ONE_FILM = RunLoad(1, Crew(8, spread=0.05), 300.0, spread=0.0)
LONG_FILM = RunLoad(500, Crew(64), 600.0, frames_a_second=0.02, long_s=5 * 3600.0)


def run_simulated(load: RunLoad) -> RunFigures:
    """Run the coordinator over a corpus, into a library that is deleted again."""
    with _library() as library, library.lease("ingest", "tests.bench.coordinator") as lease:
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
    return RunFigures(
        load=load,
        counts=dict(coordinator.totals.states),
        driver_s=float(driver_s[-1]),
        run_s=float(at_s[-1] - began_s),
        tenths=_rates(done, driver_s, load.sources),
        idle=_idle(executor.spans_s, began_s, float(at_s[-1]), load.crew.workers),
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


HEAD = (
    "| sources | film s | workers | run s | sources a driver second: all, first tenth, last tenth | workers idle "
    "| commits | retried | memory MB: before, peak | indexed, there, failed |\n" + "|---" * 10 + "|"
)


def line_of(figures: RunFigures) -> str:
    """Write the figures of a run as a row of Markdown."""
    load, counts = figures.load, figures.counts
    rates = ", ".join(f"{each:.0f}" for each in (load.sources / figures.driver_s, *figures.tenths[:: TENTHS - 1]))
    states = ", ".join(f"{counts.get(state, 0):,}" for state in ("indexed", "already there", "failed"))
    return (
        f"| {load.sources:,} | {load.length_s:g} | {load.crew.workers:,} | {figures.run_s:,.1f} | {rates} "
        f"| {figures.idle:.1%} | {figures.commits:,} | {figures.retried:,} | {figures.base_mb:,.0f}, "
        f"{figures.peak_mb:,.0f} | {states} |"
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


# Videos that a made-up library has already, as a run over a million of them finds it: rows, and no frames.

AT_ONCE = 100_000


def add_known(library: Library, count: int) -> None:
    """Write rows of so many complete videos and of their sources, 100,000 a commit."""
    for first in range(0, count, AT_ONCE):
        _add(library, [known_source(number) for number in range(first, min(first + AT_ONCE, count))], first)


def known_source(number: int) -> Source:
    """The source of the known video of this number, with the stamp that a listing gives."""
    uri = f"s3://bucket/films/of/some/folder/{number:08d}.mp4"
    return Source(uri, f"film {number}", stamp=Stamp(100_000_000 + number, f"{number:032x}"))


def _add(library: Library, sources: list[Source], first: int) -> None:
    now = datetime.now(UTC)
    ids = [f"{number * 2654435761 % 2**64:032x}" for number in range(first, first + len(sources))]
    stamps = [source.stamp for source in sources if source.stamp is not None]
    uris = [source.uri for source in sources]
    video = {
        "start_s": 0.0, "duration_s": 0.0, "fps": 25.0, "width_px": 16, "height_px": 9, "codec": "none", "frames": 0,
        "segments": 0, "transcript_lines": 0, "decode_errors": 0, "sample_fps": 1.0, "space": library.space_name,
        "state": "complete", "ingested_at": now, "digests": None,
    }  # fmt: skip
    columns = {"video_id": ids, "uri": uris, "title": uris} | {name: [each] * len(ids) for name, each in video.items()}
    library.tables.append("videos", pa.table(columns, schema=library.tables.schema("videos")))
    known = {
        "uri": uris, "video_id": ids, "size_bytes": [each.size_bytes for each in stamps],
        "stamp": [each.mark for each in stamps], "seen_at": [now] * len(ids), "mount": [None] * len(sources),
    }  # fmt: skip
    library.tables.append("sources", pa.table(known, schema=library.tables.schema("sources")))


def main(
    sources: Annotated[list[int] | None, typer.Option(min=1, help="Sources of a run; may be repeated.")] = None,
    length: Annotated[float, typer.Option(min=1.0, help="Seconds of a film, on average.")] = 600.0,
    frames: Annotated[float, typer.Option(min=1.0, help="Stored frames of a film, on average.")] = 600.0,
    workers: Annotated[int, typer.Option(min=1, help="Workers that read.")] = 1000,
    known: Annotated[list[int] | None, typer.Option(min=1, help="Known sources of a run; may be repeated.")] = None,
) -> None:
    """Simulate ingests: some tasks slow, some workers lost, some films copies, broken or deadly to every worker."""
    crew = Crew(workers, slow=0.01, lost=0.002)
    troubles = {"duplicates": 0.05, "poison": 0.02, "deadly": 0.0005}
    loads = [RunLoad(each, crew, length, frames_a_second=frames / length, **troubles) for each in sources or [10_000]]
    print(f"Simulation: real coordinator and tables; simulated workers and films, virtual time\n\n{HEAD}")
    for load in (*loads, ONE_FILM, LONG_FILM):
        print(line_of(run_alone(run_simulated, load)), flush=True)
    for number in known or [100_000]:
        start = run_alone(start_over_known, number)
        print(
            f"start of a run over {number:,} known sources: {start.cpu_s:.1f} s of CPU, memory {start.base_mb:,.0f} MB "
            f"with the list of sources, {start.peak_mb:,.0f} MB at its peak"
        )


if __name__ == "__main__":
    typer.run(main)
