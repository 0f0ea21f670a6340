"""Hands out the work of an ingest and takes in what comes of it: each video once, whatever is lost on the way.

A source goes through two tasks: identify (fetch, hash) and read. The hash decides: a video that the library holds, or
that another source of this run brought already, is not read again. A long video comes back cut into parts, which any
worker may read. A task whose worker was lost is done again, source by source, after deleting what it may have left.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from index.library import Library
from index.store.leases import Lease
from jobs.ingest.chunk_writer import discard
from jobs.ingest.commit import VideoCommitter, joined
from jobs.ingest.messages import (
    ChunkFailed,
    ChunkRead,
    ChunkSplit,
    Executor,
    Finished,
    Identify,
    IdentifyDone,
    Read,
    SourceFailed,
    WorkDone,
)
from jobs.ingest.outcomes import Progress, SourceOutcome
from pipeline.errors import DecoderDied
from pipeline.sampling.types import Chunk, IngestSettings
from pipeline.sources.discover import Source, Stamp
from pipeline.sources.fetch import FetchedVideo
from pipeline.sources.filesystem import is_remote

LOSSES = 3
"""Times that a worker may be lost over one video alone, before the video is held to be the cause."""

BUNDLE_BYTES = 1_000_000_000
TICK_S = 0.5
READING = ("fetch", "decode", "jpeg", "prepare")


@dataclass(frozen=True, slots=True)
class RunLimits:
    """How a run goes about its sources. `max_failures` None: however many fail, it goes on."""

    settings: IngestSettings
    bundle: int
    max_failures: int | None


@dataclass
class _VideoInProgress:
    """A video that this run reads: its parts so far, and other sources that turned out to be the same."""

    identified: FetchedVideo
    parts: list[ChunkRead | None]
    running: int = 0
    """Tasks that some worker has now."""
    failure: ChunkFailed | None = None
    twins: list[FetchedVideo] = field(default_factory=list)


class Coordinator:
    """One run over `sources`; `run` returns the outcomes."""

    def __init__(
        self,
        library: Library,
        lease: Lease,
        crew: Executor,
        sources: Sequence[Source],
        stamps: Mapping[str, Stamp | None],
        rules: RunLimits,
        watches: Sequence[Callable[[Progress], None]],
    ) -> None:
        self._library, self._lease, self._crew, self._rules, self._watches = library, lease, crew, rules, watches
        self._settler = VideoCommitter(library, stamps)
        self._complete = library.video_ids()
        self._claims: dict[str, _VideoInProgress] = {}
        self._losses: Counter[str] = Counter()
        self._bad: dict[str, ChunkFailed] = {}
        self._unknown: deque[Identify] = deque(_bundles(sources, stamps, rules.bundle))
        self._readable: deque[Read] = deque()
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
        return tuple(self._settler.outcomes)

    def run(self) -> None:
        """Until every source has its outcome, or too many have failed."""
        while self._hand_out() or self._in_flight:
            for finished in self._crew.wait(TICK_S):
                self._in_flight -= 1
                self._take(finished)
            if self._settler.is_due or not self._in_flight:
                self._settle()
            self._tell()
        self._settle()
        self._tell()

    def _tell(self) -> None:
        progress = self._progress()
        for watch in self._watches:
            watch(progress)

    def _hand_out(self) -> bool:
        """Give idle workers what there is; says whether anything is left to be handed out."""
        limit = self._rules.max_failures
        if limit is not None and self._settler.failed > limit and not self.stopped:
            self.stopped = f"{self._settler.failed} sources failed, and {limit} were allowed"
            self._unknown.clear()
            self._readable.clear()
        for worker in self._crew.idle(Read):
            task = next((task for task in self._readable if task.only in (None, worker)), None)
            if task is not None:
                self._readable.remove(task)
                self._start(worker, task)
        for worker in self._crew.idle(Identify):
            # One bundle ahead of the reading, so that fetching does not hold it up; more would only take up disk.
            if self._unknown and len(self._readable) < self._crew.readers:
                self._start(worker, self._unknown.popleft())
        return bool(self._unknown or self._readable)

    def _start(self, worker: int, task: Identify | Read) -> None:
        self._in_flight += 1
        if isinstance(task, Read):
            for chunk in task.chunks:
                self._claims[chunk.video.video_id].running += 1
            self._current = task.chunks[0].video.source.title
        self._crew.start(worker, task)

    def _take(self, finished: Finished) -> None:
        task, result = finished.task, finished.result
        if result is None:
            self._lose(finished.worker)
        if isinstance(task, Identify):
            if isinstance(result, IdentifyDone):
                self.seconds.update(result.seconds)
                self._take_identified(finished.worker, result.results)
            else:
                self._lost_sources(task)
            return
        for chunk in task.chunks:
            self._claims[chunk.video.video_id].running -= 1
        if not isinstance(result, WorkDone):
            self._lost_pieces(task)
            return
        self.seconds.update(result.seconds)
        for each in result.results:
            self._take_piece(each)

    def _take_identified(self, worker: int, results: Iterable[FetchedVideo | SourceFailed]) -> None:
        chunks = []
        for each in results:
            if isinstance(each, SourceFailed):
                self._settler.fail(each.source, each.stage, each.error_class, each.message)
            elif each.video_id in self._complete:
                self._settler.held(each)
                self._forget(each)
            elif each.video_id in self._claims:
                self._claims[each.video_id].twins.append(each)
                self._forget(each)
            elif each.video_id in self._bad:
                bad = self._bad[each.video_id]
                self._settler.fail(each.source, bad.stage, bad.error_class, bad.message)
                self._forget(each)
            else:
                self._claims[each.video_id] = _VideoInProgress(each, [None])
                chunks.append(Chunk(each))
        if chunks and not self.stopped:
            fetched = any(is_remote(chunk.video.source.uri) for chunk in chunks)
            self._readable.append(Read(tuple(chunks), may_split=True, only=worker if fetched else None))

    def _forget(self, identified: FetchedVideo) -> None:
        if is_remote(identified.source.uri):
            self._crew.forget(identified)

    def _take_piece(self, result: ChunkRead | ChunkFailed | ChunkSplit) -> None:
        claim = self._claims[result.chunk.video.video_id]
        if isinstance(result, ChunkSplit):
            count = len(result.spans)
            claim.parts = [None] * count
            cut = [Chunk(claim.identified, span, count, index) for index, span in enumerate(result.spans)]
            self._readable.extendleft(Read((chunk,), may_split=False) for chunk in reversed(cut))
        elif isinstance(result, ChunkFailed):
            claim.failure = claim.failure or result
            self._readable = deque(task for task in self._readable if not _is_of(task, claim.identified.video_id))
        else:
            claim.parts[result.chunk.index] = result
            if result.summary.fell_back:
                self.fell_back[result.summary.fell_back] += 1
        self._end(claim)

    def _end(self, claim: _VideoInProgress) -> None:
        """Settle a video of which nothing is being read any more, if it is all there or has failed."""
        if claim.running:
            return
        if claim.failure is not None:
            failure, claim.failure = claim.failure, None
            if failure.chunk.span is not None:
                self._lease.check()
                self._library.discard(claim.identified.video_id)
            if failure.damaged or self._may_go_well_again(failure):
                self._read_whole(claim)
            else:
                self._fail(claim, failure)
        elif all(part is not None for part in claim.parts):
            parts = [part for part in claim.parts if part is not None]
            self._settler.read(joined(parts, self._rules.settings, self._library.space_name))

    def _may_go_well_again(self, failure: ChunkFailed) -> bool:
        """Whether the decoder died for the first time: the system may have killed it for what others did."""
        uri = failure.chunk.video.source.uri
        self._losses[uri] += failure.error_class == DecoderDied.__name__
        return failure.error_class == DecoderDied.__name__ and self._losses[uri] == 1

    def _read_whole(self, claim: _VideoInProgress) -> None:
        """Read a video again in one piece: what is damaged decodes otherwise when it is entered in the middle."""
        claim.parts = [None]
        self._readable.append(Read((Chunk(claim.identified),), may_split=False))

    def _fail(self, claim: _VideoInProgress, failure: ChunkFailed) -> None:
        for identified in (claim.identified, *claim.twins):
            self._settler.fail(identified.source, failure.stage, failure.error_class, failure.message)
        self._bad[claim.identified.video_id] = failure
        del self._claims[claim.identified.video_id]
        self._forget(claim.identified)

    def _lose(self, worker: int) -> None:
        """What only a lost worker could have read, any other may: it fetches the source again."""
        self._lease.check()
        for _ in range(len(self._readable)):
            task = self._readable.popleft()
            self._readable.append(replace(task, only=None) if task.only == worker else task)

    def _lost_sources(self, task: Identify) -> None:
        for source in task.sources:
            self._losses[source.uri] += len(task.sources) == 1
            if self._losses[source.uri] >= LOSSES:
                self._settler.fail(source, "fetch", "WorkerLost", _lost_message(source))
            else:
                self.retried += 1
                self._unknown.append(Identify((source,)))

    def _lost_pieces(self, task: Read) -> None:
        for chunk in task.chunks:
            discard(self._library, chunk)
            source = chunk.video.source
            self._losses[source.uri] += len(task.chunks) == 1
            if self._losses[source.uri] >= LOSSES:
                self._take_piece(ChunkFailed(chunk, "decode", "WorkerLost", _lost_message(source)))
            elif self._claims[chunk.video.video_id].failure is not None:
                self._end(self._claims[chunk.video.video_id])
            else:
                self.retried += 1
                self._readable.append(Read((chunk,), task.may_split))

    def _settle(self) -> None:
        self._lease.check()  # a run that was taken for dead must show nothing and delete nothing more
        complete, again = self._settler.flush()
        for video in complete:
            claim = self._claims.pop(video.row.video_id)
            self._complete.add(video.row.video_id)
            for twin in claim.twins:
                self._settler.held(twin)
            self._forget(video.identified)
        for video in again:
            claim = self._claims[video.row.video_id]
            self._losses[video.row.uri] += 1
            if self._losses[video.row.uri] >= LOSSES:
                chunk = Chunk(video.identified)
                self._fail(claim, ChunkFailed(chunk, "decode", "WorkerLost", _lost_message(video.identified.source)))
            else:
                self.retried += 1
                self._read_whole(claim)

    def _progress(self) -> Progress:
        frames, video_s = self._crew.seen()  # on Ray, as of a moment ago
        busy = utilisation(self.seconds, self._crew, time.monotonic() - self._began)
        return Progress(
            done=len(self._settler.outcomes),
            total=self._total,
            failed=self._settler.failed,
            frames=max(frames, self._settler.frames),
            video_s=max(video_s, self._settler.video_s),
            bytes_done=self._settler.bytes_done,
            bytes_total=self._bytes_total,
            busy=busy,
            bottleneck=max(busy, key=lambda stage: busy[stage]) if any(busy.values()) else None,
            current=self._current,
            states=dict(self._settler.states),
            failures=dict(self._settler.failures),
            seconds=dict(self.seconds),
            queues={"identify": len(self._unknown), "read": len(self._readable), "running": self._in_flight},
            workers={"reader": self._crew.readers, "embedder": self._crew.embedders},
            retried=self.retried,
        )


def utilisation(seconds: Mapping[str, float], crew: Executor, wall_s: float) -> dict[str, float]:
    """Which part of the time those who decode, embed and write were doing so."""
    wall_s = max(wall_s, 1e-9)
    decode = sum(seconds.get(stage, 0.0) for stage in READING)
    embedders = max(crew.embedders, 1)
    return {
        "decode": decode / (wall_s * crew.readers),
        "embed": seconds.get("embed", 0.0) / (wall_s * max(embedders, crew.readers)),
        "write": seconds.get("write", 0.0) / (wall_s * crew.readers),
    }


def _is_of(task: Read, video_id: str) -> bool:
    return any(chunk.video.video_id == video_id for chunk in task.chunks) and len(task.chunks) == 1


def _bundles(sources: Sequence[Source], stamps: Mapping[str, Stamp | None], size: int) -> Iterator[Identify]:
    """Neighbouring sources, as many as allowed and no more bytes than a worker should fetch ahead."""
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
