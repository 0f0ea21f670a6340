"""Worker of an ingest: identifies sources, samples videos in a child process, embeds the frames, appends their rows.

A worker is a thread of this process (`LocalExecutor`) or a Ray actor (jobs/ingest/ray.py). While the child
decodes one batch, a thread embeds the one before and the caller appends the one before that. Batches are filled across
videos, and of one size where a vector depends on that: two runs write the same.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinodex.index.library import Library
from kinodex.jobs.ingest import messages
from kinodex.pipeline.decoding.readers import Span, SpanDamaged
from kinodex.pipeline.errors import PipelineError, SourceChanged, SourceError
from kinodex.pipeline.fetch import FetchedVideo, check_unchanged, identify
from kinodex.pipeline.filesystems import Interrupted, is_remote
from kinodex.pipeline.gpu_sampler import GpuSampler
from kinodex.pipeline.prefetch import prefetch
from kinodex.pipeline.sample import Chunk, ChunkSummary, FrameRow, SampledFrame, Sampler, frame_row, stopwatch
from kinodex.pipeline.sandbox import SandboxSampler
from kinodex.pipeline.scratch import scratch_folder
from kinodex.pipeline.source import Source

EMBEDDED_AHEAD = 2
"""Batches that wait to be embedded or appended; together with those in the child's pipe they bound the memory."""

SPLIT_FROM_BYTES = 300_000
"""Smaller files are never split: they are short, and the check costs opening them a second time."""

ChunkEnd = ChunkSummary | messages.ChunkFailed | messages.ChunkSplit
Embed = Callable[[Any], NDArray[np.float16]]
"""From model inputs uint8 `[n, 3, h, w]`, an array or a tensor on a device, to unit vectors `[n, dim]`."""


@dataclass(frozen=True, slots=True)
class _Batch:
    """One batch with its vectors: rows by the number of their chunk, and the chunks that ended before it."""

    rows: Mapping[int, Sequence[FrameRow]]
    ends: Mapping[int, ChunkEnd]
    embed_s: float = 0.0


class Worker:
    """One sampler and one writer. `identify` and `read` may run at the same time, each once."""

    def __init__(self, assignment: messages.Assignment, folder: Path, device: str = "cpu") -> None:
        self._assignment = assignment
        self._folder = folder
        self._library = Library.open(assignment.library_uri)
        on_device = assignment.sampling.decoder == "nvdec"
        self._sampler: Sampler = GpuSampler(device) if on_device else SandboxSampler(assignment.limits)
        self.frames = 0
        self.video_s = 0.0
        self._is_closed = Event()

    def close(self) -> None:
        """Stop: what is decoded, hashed or fetched now is given up."""
        self._is_closed.set()
        self._sampler.close()

    def _check(self) -> None:
        if self._is_closed.is_set():
            raise Interrupted

    def identify(self, sources: Sequence[Source]) -> messages.IdentifyDone:
        """Fetch each source, if it is remote, and identify the video by its bytes."""
        began = time.monotonic()
        found: list[FetchedVideo | messages.SourceFailed] = []
        for source in sources:
            try:
                found.append(identify(source, self._folder, self._assignment.allow_playlists, self._check))
            except Interrupted:
                break
            except PipelineError as error:
                found.append(messages.SourceFailed(source, error.stage, type(error).__name__, str(error)))
        return messages.IdentifyDone(tuple(found), {"fetch": time.monotonic() - began})

    def forget(self, video: FetchedVideo) -> None:
        """Delete the local copy of a remote source."""
        copy = Path(video.path)
        if copy.is_relative_to(self._folder):
            copy.unlink(missing_ok=True)

    def read(self, chunks: Sequence[Chunk], embed: Embed, may_split: bool, sharers: int = 1) -> messages.WorkDone:
        """Read chunks, in order, and append their rows; a chunk that fails leaves none.

        With `may_split` a long video is not read, but split for as many workers as could share it. Raises LeaseLost.
        """
        seconds: dict[str, float] = defaultdict(float)
        writer = ChunkWriter(self._library, self._assignment, chunks)
        with closing(prefetch(self._batches(chunks, embed, sharers if may_split else 0), EMBEDDED_AHEAD)) as batches:
            for batch in batches:
                if batch.rows:
                    seconds["embed"] += batch.embed_s
                for number, end in batch.ends.items():
                    writer.end(number, end)
                self.video_s += writer.add(batch.rows)
                self.frames += sum(map(len, batch.rows.values()))
                if writer.is_due:
                    with stopwatch(seconds, "write"):
                        writer.append()
        with stopwatch(seconds, "write"):
            results = writer.results()
        for result in results:
            if not isinstance(result, messages.ChunkSplit) and result.chunk.span is None:
                self.forget(result.chunk.video)
            if isinstance(result, messages.ChunkRead):
                for stage, spent_s in result.summary.seconds.items():
                    seconds[stage] += spent_s
        return messages.WorkDone(results, dict(seconds))

    def _batches(self, chunks: Sequence[Chunk], embed: Embed, sharers: int) -> Generator[_Batch, None, None]:
        """Yield rows with vectors, a full batch at a time, each with the chunks that ended before it."""
        size = self._assignment.sampling.batch
        waiting: list[tuple[int, SampledFrame]] = []
        ends: dict[int, ChunkEnd] = {}
        for number, part in self._parts(chunks, sharers):
            if not isinstance(part, list):
                ends[number] = part
                if isinstance(part, messages.ChunkFailed):
                    waiting = [each for each in waiting if each[0] != number]
                continue
            waiting += [(number, frame) for frame in part]
            while len(waiting) >= size:
                yield self._embedded(waiting[:size], ends, embed)
                waiting, ends = waiting[size:], {}
        if waiting:
            yield self._embedded(waiting, ends, embed)
        elif ends:
            yield _Batch({}, ends)

    def _parts(self, chunks: Sequence[Chunk], sharers: int) -> Iterator[tuple[int, list[SampledFrame] | ChunkEnd]]:
        """Yield the frames of every chunk, then its end, with the chunk's number."""
        for number, chunk in enumerate(chunks):
            local = chunk
            try:
                local = self._local(chunk)
                spans = self._spans(local, sharers) if sharers else ()
                if len(spans) > 1:
                    yield number, messages.ChunkSplit(chunk, spans)
                    continue
                for part in self._sampler.sample(local, self._assignment.sampling):
                    if isinstance(part, ChunkSummary):
                        check_unchanged(local.video)
                    yield number, part
            except (PipelineError, SpanDamaged) as error:
                yield number, _failure(chunk, local.video, error)
            finally:
                if local is not chunk:
                    self.forget(local.video)

    def _local(self, chunk: Chunk) -> Chunk:
        """The chunk with a path on this machine: a remote source may have been fetched to another."""
        if Path(chunk.video.path).exists() or not is_remote(chunk.video.source.uri):
            return chunk
        found = identify(chunk.video.source, self._folder, check=self._check)
        if found.video_id != chunk.video.video_id:
            self.forget(found)
            raise SourceChanged(f"{found.source.uri}: holds another video than a moment ago; ingest it again")
        return Chunk(found, chunk.span, chunk.of, chunk.index)

    def _spans(self, chunk: Chunk, sharers: int) -> tuple[Span, ...]:
        video, sampling = chunk.video, self._assignment.sampling
        may_split = chunk.span is None and sampling.cut_s > 0 and not video.is_playlist
        if not may_split or video.size_bytes < SPLIT_FROM_BYTES:
            return ()
        return self._sampler.split(chunk, replace(sampling, sharers=sharers))

    def _embedded(
        self, frames: Sequence[tuple[int, SampledFrame]], ends: Mapping[int, ChunkEnd], embed: Embed
    ) -> _Batch:
        """Embed frames and make them rows."""
        began = time.monotonic()
        filled = self._assignment.sampling.batch if self._assignment.fill_batches else 0
        vectors = embed_frames([frame for _, frame in frames], embed, filled)
        embed_s = time.monotonic() - began
        rows: dict[int, list[FrameRow]] = defaultdict(list)
        for (number, frame), vector in zip(frames, vectors, strict=True):
            rows[number].append(frame_row(frame, vector))
        return _Batch(rows, ends, embed_s)


def _failure(chunk: Chunk, read: FetchedVideo, error: PipelineError | SpanDamaged) -> messages.ChunkFailed:
    """Describe the failure of a chunk; that its file changed counts more than what a decoder made of the change."""
    if not isinstance(error, SourceError):
        try:
            check_unchanged(read)
        except SourceError as change:
            error = change
    if isinstance(error, SpanDamaged):
        return messages.ChunkFailed(chunk, "decode", "SpanDamaged", str(error), damaged=True)
    return messages.ChunkFailed(chunk, error.stage, type(error).__name__, str(error))


def embed_frames(frames: Sequence[SampledFrame], embed: Embed, filled: int) -> NDArray[np.float16]:
    """Embed a batch of frames, `[n, dim]`; filled up to so many where a vector depends on the size of its batch."""
    inputs = [frame.model_input for frame in frames]
    inputs += inputs[-1:] * (filled - len(inputs))
    return embed(_stacked(inputs))[: len(frames)]


def _stacked(inputs: Sequence[Any]) -> Any:
    """One array `[n, 3, h, w]`, or one tensor where the inputs are on a device already."""
    if isinstance(inputs[0], np.ndarray):
        return np.stack(inputs)
    import torch

    return torch.stack(list(inputs))


# Workers of this process.


@contextmanager
def local_executor(assignment: messages.Assignment, workers: int, embed: Embed, device: str) -> Iterator[LocalExecutor]:
    """Start workers; at the end they are stopped and their copies of remote sources deleted."""
    with scratch_folder() as folder:
        executor = LocalExecutor([Worker(assignment, folder, device) for _ in range(workers)], embed)
        try:
            yield executor
        finally:
            executor.close()


class LocalExecutor:
    """Executor of threads that share one model; each has a child process that decodes. See jobs/ingest/messages.py."""

    def __init__(self, workers: Sequence[Worker], embed: Embed) -> None:
        self._workers = workers
        self._embed = embed
        self._pool = ThreadPoolExecutor(2 * len(workers))
        self._running: dict[Future[Any], tuple[int, messages.Task]] = {}
        self._idle = messages.IdleWorkers()
        for worker in range(len(workers)):
            self._idle.join(worker)
        self.readers = self.capacity = len(workers)
        self.embedders = 1

    def idle(self, kind: type[messages.Task]) -> Collection[int]:
        return self._idle.of(kind)

    def start(self, worker: int, task: messages.Task) -> None:
        here = self._workers[worker]
        self._idle.start(worker, task)
        if isinstance(task, messages.Identify):
            future: Future[Any] = self._pool.submit(here.identify, task.sources)
        else:
            future = self._pool.submit(here.read, task.chunks, self._embed, task.may_split, task.sharers)
        self._running[future] = (worker, task)

    def wait(self, timeout_s: float) -> list[messages.FinishedTask]:
        done, _ = wait(self._running, timeout_s, FIRST_COMPLETED)
        finished = [messages.FinishedTask(*self._running.pop(future), future.result()) for future in done]
        for each in finished:
            self._idle.end(each.worker, each.task)
        return finished

    def forget(self, video: FetchedVideo) -> None:
        self._workers[0].forget(video)

    def counts(self) -> tuple[int, float]:
        return sum(worker.frames for worker in self._workers), sum(worker.video_s for worker in self._workers)

    def close(self) -> None:
        """Stop all work at once; the next run deletes what was not complete."""
        for worker in self._workers:
            worker.close()
        self._pool.shutdown(wait=True, cancel_futures=True)


# Rows of the chunks that a worker reads, on their way into the library.

BYTES_A_COMMIT = 64_000_000
"""Pictures that wait to be appended take no more memory than this, however large they are."""


@dataclass
class _ChunkState:
    """Frames of one chunk so far, and its end."""

    chunk: Chunk
    times_s: list[float] = field(default_factory=list)
    distances: list[float] = field(default_factory=list)
    first: NDArray[np.float16] | None = None
    last: NDArray[np.float16] | None = None
    end: ChunkEnd | None = None
    appended: int = 0
    digests: Counter[str] = field(default_factory=Counter)
    """Of what was appended, by table."""

    def add(self, frames: Sequence[FrameRow]) -> float:
        """Take the next frames; returns the seconds of video from the last frame to theirs."""
        vectors = np.stack([frame.vector for frame in frames])
        before = vectors[:1] if self.last is None else self.last
        wide = np.vstack([before, vectors]).astype(np.float64)
        distances = 1 - np.sum(wide[1:] * wide[:-1], axis=1)
        self.distances += distances[1 if self.last is None else 0 :].tolist()
        before_s = self.times_s[-1] if self.times_s else frames[0].time_s
        self.times_s += [frame.time_s for frame in frames]
        self.first = vectors[:1] if self.first is None else self.first
        self.last = vectors[-1:]
        return frames[-1].time_s - before_s

    def result(self) -> messages.ChunkResult:
        if self.end is None:
            raise RuntimeError(f"the reader gave {self.chunk.video.source.uri} no end")
        if not isinstance(self.end, ChunkSummary):
            return self.end
        ends = list(chain(*(each for each in (self.first, self.last) if each is not None)))
        times_s, distances = np.array(self.times_s), np.array(self.distances)
        return messages.ChunkRead(self.chunk, self.end, times_s, distances, np.array(ends), self.digests)


def not_kept(chunk: Chunk, why: str) -> messages.ChunkFailed:
    """Make the failure of a chunk with a value that no library can hold."""
    message = f"{chunk.video.source.uri}: {why}; the others are kept: ingest it with fewer frames a second, or mend it"
    return messages.ChunkFailed(chunk, "write", "NotKept", message)


class ChunkWriter:
    """Collects the rows of chunks, numbered in their order, and appends them a large commit at a time."""

    def __init__(self, library: Library, assignment: messages.Assignment, chunks: Sequence[Chunk]) -> None:
        library.guard(*assignment.lease)
        self._library = library
        self._assignment = assignment
        self._states = [_ChunkState(chunk) for chunk in chunks]
        self._waiting: dict[int, list[FrameRow]] = defaultdict(list)
        self._waiting_bytes = 0

    def add(self, rows: Mapping[int, Sequence[FrameRow]]) -> float:
        """Take the next rows by the number of their chunk; returns the seconds of video that they cover."""
        video_s = 0.0
        for number, frames in rows.items():
            state = self._states[number]
            why = self._library.writer.why_not_kept(None, frames=frames)
            if why is not None:
                self.end(number, not_kept(state.chunk, why))
            if isinstance(state.end, messages.ChunkFailed):
                continue
            video_s += state.add(frames)
            self._waiting[number] += frames
            self._waiting_bytes += sum(len(frame.jpeg) for frame in frames)
        return video_s

    def end(self, number: int, end: ChunkEnd) -> None:
        """Take the end of a chunk; nothing more of one that failed is appended, whatever its reader says later."""
        if isinstance(self._states[number].end, messages.ChunkFailed):
            return
        self._states[number].end = end
        if isinstance(end, messages.ChunkFailed):
            self._waiting.pop(number, None)

    @property
    def is_due(self) -> bool:
        """True if enough rows wait to be worth a commit."""
        rows = sum(map(len, self._waiting.values()))
        return rows >= self._assignment.frames_a_commit or self._waiting_bytes >= BYTES_A_COMMIT

    def append(self) -> None:
        """Append the waiting rows; raises LeaseLost if another run has taken the library over."""
        by_video: dict[str, list[FrameRow]] = defaultdict(list)
        states: dict[str, _ChunkState] = {}
        for number, frames in self._waiting.items():
            state = self._states[number]
            by_video[state.chunk.video.video_id] += frames
            states[state.chunk.video.video_id] = state  # of several chunks of a video one has the digests of all
            state.appended += len(frames)
        self._waiting.clear()
        self._waiting_bytes = 0
        if by_video:
            for name, of_video in self._library.writer.add_frames(by_video).items():
                for video_id, digest in of_video.items():
                    states[video_id].digests[name] += digest

    def results(self) -> tuple[messages.ChunkResult, ...]:
        """Append the rest and return the result of each chunk; what was appended of failed ones is deleted."""
        self.append()
        for state in self._states:
            if isinstance(state.end, messages.ChunkFailed) and state.appended:
                discard(self._library, state.chunk)
        return tuple(state.result() for state in self._states)


def discard(library: Library, *chunks: Chunk) -> None:
    """Delete what was appended of chunks: of whole videos in one go, of others their part alone."""
    library.writer.discard(*(chunk.video.video_id for chunk in chunks if chunk.span is None))
    for chunk in chunks:
        if chunk.span is not None:
            library.writer.discard_frames(chunk.video.video_id, chunk.span.first_number, chunk.span.until_number)
