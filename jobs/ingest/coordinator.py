"""Coordinator of an ingest: hands out the work and takes in the results; each video once, whatever is lost.

A source goes through two tasks, identify (fetch, hash) and read. The hash decides: a video that the library holds, or
that another source of this run brought already, is not read again. A long video comes back split into chunks, which any
worker may read. A task whose worker was lost is retried, source by source, after deleting what it may have left::

    source ── identify ──┬── cannot be fetched ────────────► outcome "failed"
                         ├── video is COMPLETE ────────────► outcome "already there", "moved"
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

A worker that is lost `LOSSES` times over one source alone is a failed chunk, too. A source whose file changed after it
was hashed goes back to "identify" with its duplicates, and its video is forgotten.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto

from kinodex.index.library import Library
from kinodex.index.store.leases import Lease
from kinodex.jobs.ingest import messages, work_queue
from kinodex.jobs.ingest.chunk_rows import discard, not_kept
from kinodex.jobs.ingest.commit import VideoCommitter, join_chunks
from kinodex.jobs.ingest.new_sources import IdSet
from kinodex.jobs.ingest.reports import ProgressReports, SourceOutcome, Totals, Watch
from kinodex.pipeline.errors import DecoderDied, SourceChanged
from kinodex.pipeline.fetch import FetchedVideo
from kinodex.pipeline.filesystems import is_remote
from kinodex.pipeline.sample import Chunk, IngestSettings
from kinodex.pipeline.source import Source

LOSSES = 3
"""Times that a worker may be lost over one source alone, before the source is taken for the cause."""

CHANGES = 3
"""Times that a source may change while it is read, before it is left to the next run."""

TICK_S = 0.5


@dataclass(frozen=True, slots=True)
class RunLimits:
    """Limits and settings of one run. `max_failures` None: the run goes on however many sources fail."""

    settings: IngestSettings
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
    chunks: list[messages.ChunkRead | None] = field(default_factory=lambda: [None])
    state: VideoState = VideoState.READING
    running: int = 0
    """Tasks that some worker has now."""
    failure: messages.ChunkFailed | None = None
    duplicates: list[FetchedVideo] = field(default_factory=list)


class Coordinator:
    """One run over the sources of `work`; after `run` its outcomes are there. `clock` gives seconds."""

    def __init__(
        self,
        library: Library,
        lease: Lease,
        executor: messages.Executor,
        work: work_queue.WorkQueue,
        complete: IdSet,
        limits: RunLimits,
        watches: Sequence[Watch],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._library, self._lease, self._executor = library, lease, executor
        self._work, self._complete, self._limits = work, complete, limits
        self._committer = VideoCommitter(library, clock, lease.check)
        self._videos: dict[str, _VideoInProgress] = {}
        self._failed: dict[str, messages.ChunkFailed] = {}
        """Stage, class and message of the videos that failed."""
        self._losses: Counter[str] = Counter()
        self._changes: Counter[str] = Counter()
        self._in_flight: Counter[type[messages.Task]] = Counter()
        self._progress = ProgressReports(watches, executor, work, self._committer.tally, clock)
        self.seconds: Counter[str] = self._progress.seconds
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
        while self._hand_out() or self._running:
            for finished in self._executor.wait(TICK_S):
                self._in_flight[type(finished.task)] -= 1
                self._take(finished)
            if self._committer.is_due or not self._running:
                self._commit()
            self._progress.show(self._running, self.retried, if_due=True)
        self._commit(is_last=True)
        self._progress.show(self._running, self.retried)

    @property
    def _running(self) -> int:
        return self._in_flight.total()

    def _hand_out(self) -> bool:
        """Start tasks on idle workers; returns True if any task is left to start."""
        work, limit = self._work, self._limits.max_failures
        if limit is not None and self._committer.failed > limit and not self.stopped:
            self.stopped = f"{self._committer.failed} sources failed, and {limit} were allowed"
            work.clear()
        idle = self._executor.idle(messages.Read)
        for worker in work.bound_workers(idle):
            self._start(worker, self._shared(work.next_bound(worker)))
        while idle and (read := work.next_read()):
            self._start(next(iter(idle)), self._shared(read))
        idle = self._executor.idle(messages.Identify)
        # One bundle ahead of the reading, so that fetching does not hold it up; more would only take up disk.
        while idle and work.has_sources and work.reads < self._executor.readers:
            self._start(next(iter(idle)), work.next_identify(self._executor.readers))
        return bool(work)

    def _shared(self, task: messages.Read) -> messages.Read:
        """Return the task with the number of workers for each video of it, if there are more workers than videos
        left.
        """
        if not task.may_split or self._work.has_sources:
            return task
        videos = len(task.chunks) + self._work.videos_to_read() + self._in_flight[messages.Identify]
        return replace(task, sharers=max(1, self._executor.capacity // videos))

    def _start(self, worker: int, task: messages.Identify | messages.Read) -> None:
        self._in_flight[type(task)] += 1
        if isinstance(task, messages.Read):
            for chunk in task.chunks:
                self._videos[chunk.video.video_id].running += 1
            self._progress.current = task.chunks[0].video.source.title
        self._executor.start(worker, task)

    def _take(self, finished: messages.FinishedTask) -> None:
        """Take in the end of a task."""
        task, result = finished.task, finished.result
        if result is None:
            self._lease.check()
            self._work.release(finished.worker)
        if isinstance(task, messages.Identify):
            if isinstance(result, messages.IdentifyDone):
                self.seconds.update(result.seconds)
                self._take_identified(finished.worker, result.results)
            else:
                self._retry_sources(task)
            return
        for chunk in task.chunks:
            self._videos[chunk.video.video_id].running -= 1
        if not isinstance(result, messages.WorkDone):
            self._retry_chunks(task)
            return
        self.seconds.update(result.seconds)
        for each in result.results:
            self._take_chunk(each)

    def _take_identified(self, worker: int, results: Iterable[FetchedVideo | messages.SourceFailed]) -> None:
        chunks = []
        for each in results:
            if isinstance(each, messages.SourceFailed):
                self._take_failed_source(each)
            elif self._state(each.video_id) is VideoState.NEW:
                self._videos[each.video_id] = _VideoInProgress(each)
                chunks.append(Chunk(each))
            else:
                self._take_duplicate(each)
        if chunks and not self.stopped:
            fetched = any(is_remote(chunk.video.source.uri) for chunk in chunks)
            self._work.add(messages.Read(tuple(chunks), may_split=True, only=worker if fetched else None))

    def _state(self, video_id: str) -> VideoState:
        if video_id in self._videos:
            return self._videos[video_id].state
        if video_id in self._failed:
            return VideoState.FAILED
        return VideoState.COMPLETE if video_id in self._complete else VideoState.NEW

    def _take_duplicate(self, fetched: FetchedVideo) -> None:
        """Take in a source whose video the library has, or another source brought."""
        video_id = fetched.video_id
        if video_id in self._videos:
            self._videos[video_id].duplicates.append(fetched)
        elif video_id in self._failed:
            self._fail_source(fetched.source, self._failed[video_id])
        else:
            self._committer.already_there(fetched)
        self._forget(fetched)

    def _forget(self, fetched: FetchedVideo) -> None:
        if is_remote(fetched.source.uri):
            self._executor.forget(fetched)

    def _take_chunk(self, result: messages.ChunkResult) -> None:
        video = self._videos[result.chunk.video.video_id]
        if isinstance(result, messages.ChunkSplit):
            count = len(result.spans)
            video.chunks = [None] * count
            parts = [Chunk(video.fetched, span, count, index) for index, span in enumerate(result.spans)]
            self._work.add_first([messages.Read((chunk,), may_split=False) for chunk in parts])
        elif isinstance(result, messages.ChunkFailed):
            video.state, video.failure = VideoState.FAILING, video.failure or result
            if len(video.chunks) > 1:
                self._work.drop_parts(video.fetched.video_id)
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
            if failure.error_class == SourceChanged.__name__:
                self._identify_again(video, failure)
            elif failure.damaged or self._may_succeed_again(failure):
                self._read_whole(video)
            else:
                self._fail(video, failure)
        elif all(chunk is not None for chunk in video.chunks):
            video.state = VideoState.COMMITTING
            chunks = [chunk for chunk in video.chunks if chunk is not None]
            read = join_chunks(chunks, self._limits.settings, self._library.space_name)
            why = self._library.writer.why_not_kept(read.row, read.speech)
            if why is None:
                self._committer.add(read)
                return
            self._lease.check()
            self._library.writer.discard(video.fetched.video_id)
            self._fail(video, not_kept(Chunk(video.fetched), why))

    def _identify_again(self, video: _VideoInProgress, failure: messages.ChunkFailed) -> None:
        """Forget a video that its source no longer held when it was read."""
        del self._videos[video.fetched.video_id]
        self._forget(video.fetched)
        for each in video.duplicates:
            self._work.identify_again(each.source)
        source = video.fetched.source
        self._take_failed_source(messages.SourceFailed(source, failure.stage, failure.error_class, failure.message))

    def _take_failed_source(self, failed: messages.SourceFailed) -> None:
        source, changed = failed.source, failed.error_class == SourceChanged.__name__
        self._changes[source.uri] += changed
        if changed and self._changes[source.uri] < CHANGES:
            self._work.identify_again(source)
        else:
            self._committer.fail(source, failed.stage, failed.error_class, failed.message)

    def _may_succeed_again(self, failure: messages.ChunkFailed) -> bool:
        """Return True if the decoder died for the first time: the system may have killed it for what others did."""
        uri = failure.chunk.video.source.uri
        self._losses[uri] += failure.error_class == DecoderDied.__name__
        return failure.error_class == DecoderDied.__name__ and self._losses[uri] == 1

    def _read_whole(self, video: _VideoInProgress) -> None:
        """Read a video again in one chunk: damaged data decodes otherwise when it is entered in the middle."""
        video.state, video.failure, video.chunks = VideoState.READING, None, [None]
        self._work.add(messages.Read((Chunk(video.fetched),), may_split=False))

    def _fail(self, video: _VideoInProgress, failure: messages.ChunkFailed) -> None:
        for fetched in (video.fetched, *video.duplicates):
            self._fail_source(fetched.source, failure)
        self._failed[video.fetched.video_id] = failure
        del self._videos[video.fetched.video_id]
        self._forget(video.fetched)

    def _fail_source(self, source: Source, failure: messages.ChunkFailed) -> None:
        """Write the failure of a source; its message names this one, whichever with the same bytes was read."""
        name, message = failure.chunk.video.source.uri, failure.message
        if message.startswith(f"{name}:"):
            message = source.uri + message.removeprefix(name)
        self._committer.fail(source, failure.stage, failure.error_class, message)

    def _retry_sources(self, task: messages.Identify) -> None:
        for source in task.sources:
            self._losses[source.uri] += len(task.sources) == 1
            if self._losses[source.uri] >= LOSSES:
                self._committer.fail(source, "fetch", "WorkerLost", _lost_message(source))
            else:
                self.retried += 1
                self._work.identify_again(source)

    def _retry_chunks(self, task: messages.Read) -> None:
        discard(self._library, *task.chunks)
        for chunk in task.chunks:
            source, video = chunk.video.source, self._videos[chunk.video.video_id]
            self._losses[source.uri] += len(task.chunks) == 1
            if self._losses[source.uri] >= LOSSES:
                self._take_chunk(messages.ChunkFailed(chunk, "decode", "WorkerLost", _lost_message(source)))
            elif video.state is VideoState.FAILING:
                self._advance(video)
            else:
                self.retried += 1
                self._work.add(messages.Read((chunk,), task.may_split))

    def _commit(self, *, is_last: bool = False) -> None:
        """Write what waits, and take in which videos are complete and which have to be read again."""
        self._lease.check()  # a run that was taken for dead must show nothing and delete nothing more
        complete, rejected = self._committer.flush(is_last=is_last)
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
                self._fail(video, messages.ChunkFailed(Chunk(each.fetched), "decode", "WorkerLost", message))
            else:
                self.retried += 1
                self._read_whole(video)


def _lost_message(source: Source) -> str:
    return (
        f"{source.uri}: the worker that had it was lost {LOSSES} times, each time with no other source; "
        "look at the cluster's logs (out of memory?), then use --retry-failed"
    )
