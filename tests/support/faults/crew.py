"""Workers of an ingest without a decoder: they write by the real `ChunkWriter` frames that are made up, or die on it.

With them an ingest of a film takes a tenth of a second, and a test decides what becomes of every task.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from kinodex.index.lease_holders import INGEST
from kinodex.index.library import Library
from kinodex.index.sweep import sweep
from kinodex.jobs.ingest.chunk_rows import ChunkWriter, discard
from kinodex.jobs.ingest.config import IngestConfig
from kinodex.jobs.ingest.coordinator import Coordinator, RunLimits
from kinodex.jobs.ingest.messages import (
    Assignment,
    ChunkFailed,
    ChunkResult,
    ChunkSplit,
    FinishedTask,
    Identify,
    IdentifyDone,
    IdleWorkers,
    Read,
    Task,
    WorkDone,
)
from kinodex.jobs.ingest.new_sources import complete_ids
from kinodex.jobs.ingest.work_queue import WorkQueue
from kinodex.pipeline.decoding.readers import Span
from kinodex.pipeline.decoding.stream import VideoMetadata
from kinodex.pipeline.fetch import FetchedVideo
from kinodex.pipeline.sample import Chunk, ChunkSummary, FrameRow, SamplingSettings
from kinodex.pipeline.sandbox import SandboxLimits
from kinodex.pipeline.source import Source
from kinodex.pipeline.subtitles.lines import Line
from tests.support.ffmpeg import COLOURS
from tests.world.drawn_space import DRAWN, drawn_fingerprint

JPEG = b"\xff\xd8 %s \xff\xd9"
METADATA = VideoMetadata("mp4", 0, "h264", "yuv420p", 64, 36, 1.0, 0, 1.0, None, False, False)
CONFIG = IngestConfig(space=DRAWN)
PARTS = 2
"""Of a film of at least `LONG` frames, where several workers could share it."""
LONG = 6


@dataclass(frozen=True)
class Film:
    """The bytes of a film, by their name: this many frames, one a second, and a line of speech."""

    name: str
    frames: int

    @property
    def video_id(self) -> str:
        return hashlib.sha256(self.name.encode()).hexdigest()[:32]

    @property
    def line(self) -> str:
        return f"here is {self.name}"

    def rows(self, first: int, until: int) -> list[FrameRow]:
        vectors = np.random.default_rng(self.frames).standard_normal((self.frames, drawn_fingerprint().dim))
        units = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float16)
        jpegs = [JPEG % f"{self.name} {number}".encode() for number in range(self.frames)]
        return [FrameRow(n, float(n), 64, 36, jpegs[n], units[n]) for n in range(first, until)]


def new_library(place: Path) -> Library:
    """An empty library in the drawn space."""
    return Library.create(str(place), asdict(CONFIG.settings()), drawn_fingerprint())


Fate = Callable[[Task], str]
"""Says what becomes of a task: one of `FATES`."""
FAILURES = {"damaged": "SpanDamaged", "decoder dies": "DecoderDied"}
FATES = ("done", "lost before", "lost half way", "lost after", "stalls", "rows lost", *FAILURES, "the run ends")


class RunEnded(Exception):
    """The driver of a run died."""


class Crew:
    """An `Executor` of this many workers; `fate` decides what becomes of each task that one begins."""

    def __init__(self, library: Library, token: str, films: Mapping[str, Film], workers: int, fate: Fate) -> None:
        sampling = SamplingSettings(fps=1.0, jpeg_side_px=64, jpeg_quality=85, decoder="pyav", input=COLOURS)
        self._library, self._films, self._fate = library, films, fate
        self._assignment = Assignment(library.uri, (INGEST, token), sampling, SandboxLimits(), 3)
        self._idle = IdleWorkers()
        self._running: list[tuple[int, Task]] = []
        self._given_up: list[Task] = []
        self.readers = self.capacity = workers
        self.embedders = 1
        for worker in range(workers):
            self._idle.join(worker)

    def idle(self, kind: type[Task]) -> Collection[int]:
        return self._idle.of(kind)

    def start(self, worker: int, task: Task) -> None:
        self._idle.start(worker, task)
        self._running.append((worker, task))

    def wait(self, timeout_s: float) -> list[FinishedTask]:
        """End one task, after what a worker that was given up long ago still does."""
        for late in self._given_up[1:]:
            self._given_up.remove(late)
            self._do(late)
        if not self._running:
            return []
        worker, task = self._running.pop(0)
        fate = self._fate(task)
        result: IdentifyDone | WorkDone | None = None
        if fate == "the run ends":
            raise RunEnded
        if fate in ("done", "lost after", "rows lost", *FAILURES):
            result = self._do(task, FAILURES.get(fate))
            if fate == "rows lost" and isinstance(task, Read):
                discard(self._library, *task.chunks)
        elif fate == "lost half way" and isinstance(task, Read):
            self._half(task)
        elif fate == "stalls":
            self._given_up.append(task)
        self._idle.end(worker, task)
        return [FinishedTask(worker, task, None if fate == "lost after" else result)]

    def forget(self, video: FetchedVideo) -> None:
        """Nothing was fetched."""

    def counts(self) -> tuple[int, float]:
        return 0, 0.0

    def close(self) -> None:
        """Let those that were given up do what they were asked, now that nobody waits for it."""
        for late in self._given_up:
            self._do(late)

    def _do(self, task: Task, failure: str | None = None) -> IdentifyDone | WorkDone:
        if isinstance(task, Identify):
            return IdentifyDone(tuple(map(self._identified, task.sources)), {})
        writer = ChunkWriter(self._library, self._assignment, task.chunks)
        for number, chunk in enumerate(task.chunks):
            film = self._films[chunk.video.source.uri]
            if task.may_split and task.sharers > 1 and film.frames >= LONG:
                half = film.frames // PARTS
                writer.end(number, ChunkSplit(chunk, (Span(0, half, 0, half), Span(half, None, half, None))))
                continue
            writer.add({number: film.rows(*_numbers(chunk, film))})
            if writer.is_due:
                writer.append()
            writer.end(number, _summary(chunk, film) if failure is None else _failed(chunk, failure))
        results: tuple[ChunkResult, ...] = writer.results()
        return WorkDone(results, {})

    def _half(self, task: Read) -> None:
        """Write the first half of each chunk."""
        writer = ChunkWriter(self._library, self._assignment, task.chunks)
        for number, chunk in enumerate(task.chunks):
            film = self._films[chunk.video.source.uri]
            first, until = _numbers(chunk, film)
            writer.add({number: film.rows(first, (first + until + 1) // 2)})
        writer.append()

    def _identified(self, source: Source) -> FetchedVideo:
        return FetchedVideo(source, source.uri, self._films[source.uri].video_id, 1)


def _numbers(chunk: Chunk, film: Film) -> tuple[int, int]:
    """The numbers `[first, until)` of a chunk's frames."""
    if chunk.span is None:
        return 0, film.frames
    return chunk.span.first_number, film.frames if chunk.span.until_number is None else chunk.span.until_number


def _summary(chunk: Chunk, film: Film) -> ChunkSummary:
    line = Line(0.0, 1.0, film.line, "sidecar", "en")
    lines = () if chunk.index else (line,)
    return ChunkSummary(METADATA, 0.0, float(film.frames), 0, lines, (), {}, "pyav")


def _failed(chunk: Chunk, failure: str) -> ChunkFailed:
    return ChunkFailed(chunk, "decode", failure, "made by the test", failure == "SpanDamaged")


def ingest(
    library: Library, films: Mapping[str, Film], workers: int = 2, fate: Fate = lambda task: "done"
) -> Counter[str]:
    """Ingest films by URI as `run_ingest` does; returns the number of sources by the state of their outcome."""
    with library.lease(INGEST, "a test") as lease:
        library.writer.note_rows()
        library.ingest_log.note_sources()
        sweep(library)
        crew = Crew(library, lease.token, films, workers, fate)
        work = WorkQueue([Source(uri, Path(uri).stem) for uri in films], [1] * len(films), CONFIG.bundle)
        limits = RunLimits(CONFIG.settings(), None)
        coordinator = Coordinator(library, lease, crew, work, complete_ids(library), limits, [])
        try:
            coordinator.run()
        finally:
            crew.close()
        return Counter(each.state for each in coordinator.outcomes)
