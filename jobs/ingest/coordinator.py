"""Coordinator of an ingest: hands out the work and takes in the results; each video once, whatever is lost.

A source goes through two tasks, identify (fetch, hash) and read. The hash decides: a video that the library holds, or
that another source of this run brought already, is not read again. A long video comes back split into chunks, which any
worker may read. A task whose worker was lost is retried, source by source, after deleting what it may have left::

    source ── identify ──┬── cannot be fetched ────────────► outcome "failed"
                         ├── video is COMPLETE ────────────► outcome "already there"
                         ├── video is FAILED ──────────────► outcome "failed"
                         ├── READING, FAILING, COMMITTING ─► a duplicate: gets the outcome of that video
                         └── NEW
                              │
                              ▼         all chunks read                 rows counted and shown
        worker lost: ┌──► READING ─────────────────────► COMMITTING ────────────────────────► COMPLETE
        retry chunk  └──────┘ │ ▲ ▲                        │     │
                              │ │ └── rows are missing: ───┘     │
                              │ │     read the whole again       │
                    a chunk   │ │                                │
                    fails     │ │ chunk was damaged, or the      │ rows are missing for
                              │ │ decoder died for the first     │ the third time
                              ▼ │ time: read the whole again     │
                           FAILING                               │
                              │ otherwise, once no worker        │
                              │ reads a chunk of it any more     │
                              ▼                                  │
                           FAILED ◄──────────────────────────────┘

A worker that is lost `LOSSES` times over one source alone is a failed chunk, too.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto

from index.library import Library
from index.store.leases import Lease
from jobs.ingest.chunk_writer import discard
from jobs.ingest.commit import VideoCommitter, join_chunks
from jobs.ingest.messages import (
    ChunkFailed,
    ChunkRead,
    ChunkResult,
    ChunkSplit,
    Executor,
    FinishedTask,
    Identify,
    IdentifyDone,
    Read,
    SourceFailed,
    WorkDone,
)
from jobs.ingest.outcomes import Progress, SourceOutcome, Totals, Watch, utilisation
from pipeline.errors import DecoderDied
from pipeline.sampling.sample import Chunk, IngestSettings
from pipeline.sources.fetch import FetchedVideo, Source, Stamp, is_remote

LOSSES = 3
"""Times that a worker may be lost over one source alone, before the source is taken for the cause."""

BUNDLE_BYTES = 1_000_000_000
TICK_S = 0.5


@dataclass(frozen=True, slots=True)
class RunLimits:
    """Limits and settings of one run. `max_failures` None: the run goes on however many sources fail."""

    settings: IngestSettings
    bundle: int
    max_failures: int | None


class VideoState(Enum):
    """State of a video in a run; the module's docstring draws it."""

    NEW = auto()
    READING = auto()
    FAILING = auto()
    COMMITTING = auto()
    COMPLETE = auto()
    FAILED = auto()


@dataclass
class _VideoInProgress:
    """A video of this run that is not complete: its chunks so far, and other sources with the same bytes."""

    fetched: FetchedVideo
    chunks: list[ChunkRead | None] = field(default_factory=lambda: [None])
    state: VideoState = VideoState.READING
    running: int = 0
    """Tasks that some worker has now."""
    failure: ChunkFailed | None = None
    duplicates: list[FetchedVideo] = field(default_factory=list)


class Coordinator:
    """One run over `sources`; after `run` its outcomes are there."""

    def __init__(
        self,
        library: Library,
        lease: Lease,
        executor: Executor,
        sources: Sequence[Source],
        stamps: Mapping[str, Stamp | None],
        limits: RunLimits,
        watches: Sequence[Watch],
    ) -> None:
        self._library, self._lease, self._executor = library, lease, executor
        self._limits, self._watches = limits, watches
        self._committer = VideoCommitter(library)
        sources = [replace(source, stamp=stamps.get(source.uri)) for source in sources]
        self._complete = library.video_ids()
        self._videos: dict[str, _VideoInProgress] = {}
        self._losses: Counter[str] = Counter()
        self._to_identify: deque[Identify] = deque(_bundles(sources, stamps, limits.bundle))
        self._to_read: deque[Read] = deque()
        self._total = len(sources)
        known = [stamp.size_bytes for stamp in (stamps.get(source.uri) for source in sources) if stamp is not None]
        self._bytes_total = sum(known) if len(known) == len(sources) else None
        self._in_flight = 0
        self._current = ""
        self._began = time.monotonic()
        self.seconds: Counter[str] = Counter()
        self.fell_back: Counter[str] = Counter()
        self.retried = 0
        self.stopped: str | None = None

    @property
    def outcomes(self) -> tuple[SourceOutcome, ...]:
        return tuple(self._committer.tally.outcomes)

    @property
    def totals(self) -> Totals:
        return self._committer.tally.totals()

    def run(self) -> None:
        """Run until every source has its outcome, or too many have failed."""
        while self._hand_out() or self._in_flight:
            for finished in self._executor.wait(TICK_S):
                self._in_flight -= 1
                self._take(finished)
            if self._committer.is_due or not self._in_flight:
                self._commit()
            self._show_progress()
        self._commit()
        self._show_progress()

    def _show_progress(self) -> None:
        progress = self._progress()
        for watch in self._watches:
            watch(progress)

    def _hand_out(self) -> bool:
        """Start tasks on idle workers; returns True if any task is left to start."""
        limit = self._limits.max_failures
        if limit is not None and self._committer.failed > limit and not self.stopped:
            self.stopped = f"{self._committer.failed} sources failed, and {limit} were allowed"
            self._to_identify.clear()
            self._to_read.clear()
        for worker in self._executor.idle(Read):
            task = next((task for task in self._to_read if task.only in (None, worker)), None)
            if task is not None:
                self._to_read.remove(task)
                self._start(worker, task)
        for worker in self._executor.idle(Identify):
            # One bundle ahead of the reading, so that fetching does not hold it up; more would only take up disk.
            if self._to_identify and len(self._to_read) < self._executor.readers:
                self._start(worker, self._to_identify.popleft())
        return bool(self._to_identify or self._to_read)

    def _start(self, worker: int, task: Identify | Read) -> None:
        self._in_flight += 1
        if isinstance(task, Read):
            for chunk in task.chunks:
                self._videos[chunk.video.video_id].running += 1
            self._current = task.chunks[0].video.source.title
        self._executor.start(worker, task)

    def _take(self, finished: FinishedTask) -> None:
        """Take in the end of a task."""
        task, result = finished.task, finished.result
        if result is None:
            self._free_tasks(finished.worker)
        if isinstance(task, Identify):
            if isinstance(result, IdentifyDone):
                self.seconds.update(result.seconds)
                self._take_identified(finished.worker, result.results)
            else:
                self._retry_sources(task)
            return
        for chunk in task.chunks:
            self._videos[chunk.video.video_id].running -= 1
        if not isinstance(result, WorkDone):
            self._retry_chunks(task)
            return
        self.seconds.update(result.seconds)
        for each in result.results:
            self._take_chunk(each)

    def _take_identified(self, worker: int, results: Iterable[FetchedVideo | SourceFailed]) -> None:
        chunks = []
        for each in results:
            if isinstance(each, SourceFailed):
                self._committer.fail(each.source, each.stage, each.error_class, each.message)
            elif self._state(each.video_id) is VideoState.NEW:
                self._videos[each.video_id] = _VideoInProgress(each)
                chunks.append(Chunk(each))
            else:
                self._take_duplicate(each)
        if chunks and not self.stopped:
            fetched = any(is_remote(chunk.video.source.uri) for chunk in chunks)
            self._to_read.append(Read(tuple(chunks), may_split=True, only=worker if fetched else None))

    def _state(self, video_id: str) -> VideoState:
        if video_id in self._complete:
            return VideoState.COMPLETE
        return self._videos[video_id].state if video_id in self._videos else VideoState.NEW

    def _take_duplicate(self, fetched: FetchedVideo) -> None:
        """Take in a source whose video the library has, or another source brought."""
        video = self._videos.get(fetched.video_id)
        if video is None:
            self._committer.already_there(fetched)
        elif video.state is VideoState.FAILED and video.failure is not None:
            self._fail_source(fetched, video.failure)
        else:
            video.duplicates.append(fetched)
        self._forget(fetched)

    def _forget(self, fetched: FetchedVideo) -> None:
        if is_remote(fetched.source.uri):
            self._executor.forget(fetched)

    def _take_chunk(self, result: ChunkResult) -> None:
        video = self._videos[result.chunk.video.video_id]
        if isinstance(result, ChunkSplit):
            count = len(result.spans)
            video.chunks = [None] * count
            parts = [Chunk(video.fetched, span, count, index) for index, span in enumerate(result.spans)]
            self._to_read.extendleft(Read((chunk,), may_split=False) for chunk in reversed(parts))
        elif isinstance(result, ChunkFailed):
            video.state, video.failure = VideoState.FAILING, video.failure or result
            video_id = video.fetched.video_id
            self._to_read = deque(task for task in self._to_read if not _is_chunk_of(task, video_id))
        else:
            video.chunks[result.chunk.index] = result
            if result.summary.fell_back:
                self.fell_back[result.summary.fell_back] += 1
        self._advance(video)

    def _advance(self, video: _VideoInProgress) -> None:
        """Move a video on to its next state, if no worker has a chunk of it and all are read or one has failed."""
        if video.running:
            return
        if video.state is VideoState.FAILING and video.failure is not None:
            failure = video.failure
            if failure.chunk.span is not None:
                self._lease.check()
                self._library.writer.discard(video.fetched.video_id)
            if failure.damaged or self._may_succeed_again(failure):
                self._read_whole(video)
            else:
                self._fail(video, failure)
        elif all(chunk is not None for chunk in video.chunks):
            video.state = VideoState.COMMITTING
            chunks = [chunk for chunk in video.chunks if chunk is not None]
            self._committer.add(join_chunks(chunks, self._limits.settings, self._library.space_name))

    def _may_succeed_again(self, failure: ChunkFailed) -> bool:
        """True if the decoder died for the first time: the system may have killed it for what others did."""
        uri = failure.chunk.video.source.uri
        self._losses[uri] += failure.error_class == DecoderDied.__name__
        return failure.error_class == DecoderDied.__name__ and self._losses[uri] == 1

    def _read_whole(self, video: _VideoInProgress) -> None:
        """Read a video again in one chunk: damaged data decodes otherwise when it is entered in the middle."""
        video.state, video.failure, video.chunks = VideoState.READING, None, [None]
        self._to_read.append(Read((Chunk(video.fetched),), may_split=False))

    def _fail(self, video: _VideoInProgress, failure: ChunkFailed) -> None:
        for fetched in (video.fetched, *video.duplicates):
            self._fail_source(fetched, failure)
        video.state, video.failure, video.duplicates, video.chunks = VideoState.FAILED, failure, [], []
        self._forget(video.fetched)

    def _fail_source(self, fetched: FetchedVideo, failure: ChunkFailed) -> None:
        self._committer.fail(fetched.source, failure.stage, failure.error_class, failure.message)

    def _free_tasks(self, worker: int) -> None:
        """Let any worker read what only a lost one could: it fetches the source again."""
        self._lease.check()
        for _ in range(len(self._to_read)):
            task = self._to_read.popleft()
            self._to_read.append(replace(task, only=None) if task.only == worker else task)

    def _retry_sources(self, task: Identify) -> None:
        for source in task.sources:
            self._losses[source.uri] += len(task.sources) == 1
            if self._losses[source.uri] >= LOSSES:
                self._committer.fail(source, "fetch", "WorkerLost", _lost_message(source))
            else:
                self.retried += 1
                self._to_identify.append(Identify((source,)))

    def _retry_chunks(self, task: Read) -> None:
        for chunk in task.chunks:
            discard(self._library, chunk)
            source, video = chunk.video.source, self._videos[chunk.video.video_id]
            self._losses[source.uri] += len(task.chunks) == 1
            if self._losses[source.uri] >= LOSSES:
                self._take_chunk(ChunkFailed(chunk, "decode", "WorkerLost", _lost_message(source)))
            elif video.state is VideoState.FAILING:
                self._advance(video)
            else:
                self.retried += 1
                self._to_read.append(Read((chunk,), task.may_split))

    def _commit(self) -> None:
        """Write what waits, and take in which videos are complete and which have to be read again."""
        self._lease.check()  # a run that was taken for dead must show nothing and delete nothing more
        complete, rejected = self._committer.flush()
        for each in complete:
            video = self._videos.pop(each.row.video_id)
            self._complete.add(each.row.video_id)
            for duplicate in video.duplicates:
                self._committer.already_there(duplicate)
            self._forget(video.fetched)
        for each in rejected:
            video = self._videos[each.row.video_id]
            self._losses[each.row.uri] += 1
            if self._losses[each.row.uri] >= LOSSES:
                message = _lost_message(each.fetched.source)
                self._fail(video, ChunkFailed(Chunk(each.fetched), "decode", "WorkerLost", message))
            else:
                self.retried += 1
                self._read_whole(video)

    def _progress(self) -> Progress:
        committer, tally = self._committer, self._committer.tally
        frames, video_s = self._executor.counts()  # on Ray, as of a moment ago
        readers, embedders = self._executor.readers, self._executor.embedders
        busy = utilisation(self.seconds, readers, embedders, time.monotonic() - self._began)
        return Progress(
            done=tally.done,
            total=self._total,
            failed=committer.failed,
            frames=max(frames, tally.frames),
            video_s=max(video_s, tally.video_s),
            bytes_done=tally.bytes_done,
            bytes_total=self._bytes_total,
            busy=busy,
            bottleneck=max(busy, key=lambda stage: busy[stage]) if any(busy.values()) else None,
            current=self._current,
            states=dict(tally.states),
            failures=dict(tally.failures),
            seconds=dict(self.seconds),
            queues={"identify": len(self._to_identify), "read": len(self._to_read), "running": self._in_flight},
            workers={"reader": readers, "embedder": embedders},
            retried=self.retried,
        )


def _is_chunk_of(task: Read, video_id: str) -> bool:
    return any(chunk.video.video_id == video_id for chunk in task.chunks) and len(task.chunks) == 1


def _bundles(sources: Sequence[Source], stamps: Mapping[str, Stamp | None], size: int) -> Iterator[Identify]:
    """Group neighbouring sources, as many as allowed and no more bytes than a worker should fetch ahead."""
    bundle: list[Source] = []
    bundle_bytes = 0
    for source in sources:
        stamp = stamps.get(source.uri)
        size_bytes = stamp.size_bytes if stamp is not None else 0
        if bundle and (len(bundle) == size or bundle_bytes + size_bytes > BUNDLE_BYTES):
            yield Identify(tuple(bundle))
            bundle, bundle_bytes = [], 0
        bundle.append(source)
        bundle_bytes += size_bytes
    if bundle:
        yield Identify(tuple(bundle))


def _lost_message(source: Source) -> str:
    return (
        f"{source.uri}: the worker that had it was lost {LOSSES} times, each time with this source alone; "
        "look at the cluster's logs (out of memory?), then use --retry-failed"
    )
