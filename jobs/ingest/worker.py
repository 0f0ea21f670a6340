"""Worker of an ingest: identifies sources, samples videos in a child process, embeds the frames, appends their rows.

A worker is a thread of this process (`LocalExecutor`) or a Ray actor (jobs/ingest/ray.py). While the child
decodes one batch, a thread embeds the one before and the caller appends the one before that. Batches are filled across
videos, and of one size where a vector depends on that: two runs write the same.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinodex.index.library import Library
from kinodex.jobs.ingest import messages
from kinodex.jobs.ingest.chunk_rows import ChunkEnd, ChunkWriter
from kinodex.pipeline.decoding.readers import Span, SpanDamaged
from kinodex.pipeline.errors import PipelineError, SourceChanged, SourceError
from kinodex.pipeline.fetch import FetchedVideo, check_unchanged, identify
from kinodex.pipeline.filesystems import Interrupted, is_remote
from kinodex.pipeline.gpu_sampler import GpuSampler
from kinodex.pipeline.prefetch import prefetch
from kinodex.pipeline.sample import Chunk, ChunkSummary, FrameRow, SampledFrame, Sampler, frame_row, stopwatch
from kinodex.pipeline.sandbox import SandboxSampler
from kinodex.pipeline.source import Source

EMBEDDED_AHEAD = 2
"""Batches that wait to be embedded or appended; together with those in the child's pipe they bound the memory."""

SPLIT_FROM_BYTES = 300_000
"""Smaller files are never split: they are short, and the check costs opening them a second time."""

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
        """Yield the rows with vectors, a full batch at a time, each with the chunks that ended before it."""
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
        """Return the chunk with a path on this machine: a remote source may have been fetched to another."""
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
    """Embed a batch of frames, `[n, dim]`; filled up to this many where a vector depends on the size of its batch."""
    inputs = [frame.model_input for frame in frames]
    inputs += inputs[-1:] * (filled - len(inputs))
    return embed(_stacked(inputs))[: len(frames)]


def _stacked(inputs: Sequence[Any]) -> Any:
    """Return one array `[n, 3, h, w]`, or one tensor where the inputs are on a device already."""
    if isinstance(inputs[0], np.ndarray):
        return np.stack(inputs)
    import torch

    return torch.stack(list(inputs))
