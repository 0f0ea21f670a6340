"""What one worker does: identify sources, read videos in a child process of its own, embed, and append the rows.

A worker is a thread of this process or a Ray actor; both run this. While the child decodes one batch, a thread embeds
the one before and the caller appends the one before that. Batches are filled across videos, and always of one size:
so a vector does not depend on what else was in its batch, and two runs write the same.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from index.library import Library
from jobs.ingest.messages import Assignment, ChunkFailed, ChunkRead, ChunkSplit, IdentifyDone, SourceFailed, WorkDone
from pipeline.decoding.base import Span, SpanDamaged
from pipeline.errors import PipelineError
from pipeline.prefetch import prefetch
from pipeline.sampling.gpu_sampler import GpuSampler
from pipeline.sampling.sample import timed
from pipeline.sampling.sandbox import Reader
from pipeline.sampling.types import Chunk, ChunkSummary, FrameRow, SampledFrame, SamplingSettings, frame_row
from pipeline.sources.discover import Source
from pipeline.sources.fetch import FetchedVideo, identify
from pipeline.sources.filesystem import is_remote

EMBEDDED_AHEAD = 2
"""Batches that wait to be embedded or appended; together with those in the child's pipe they bound the memory."""

CUT_FROM_BYTES = 300_000
"""Smaller files are never looked at for cutting: they are short, and looking costs a second opening."""

BYTES_A_COMMIT = 64_000_000
"""Pictures that wait to be appended take no more memory than this, however large they are."""

Embed = Callable[[Any], NDArray[np.float16]]
"""From model inputs uint8 `[n, 3, h, w]`, an array or a tensor on a device, to unit vectors `[n, dim]`."""


class PieceReader(Protocol):
    """pipeline.sampling.sandbox.Reader, or pipeline.sampling.gpu_sampler.GpuSampler."""

    def cut(self, chunk: Chunk, reading: SamplingSettings) -> tuple[Span, ...]: ...
    def read(self, chunk: Chunk, reading: SamplingSettings) -> Iterator[list[SampledFrame] | ChunkSummary]: ...
    def close(self) -> None: ...


@dataclass
class _Gathered:
    """What is known of a piece so far."""

    times_s: list[float] = field(default_factory=list)
    distances: list[float] = field(default_factory=list)
    first: NDArray[np.float16] | None = None
    last: NDArray[np.float16] | None = None
    end: ChunkSummary | ChunkFailed | ChunkSplit | None = None
    appended: int = 0

    def add(self, times_s: list[float], vectors: NDArray[np.float16]) -> None:
        before = vectors[:1] if self.last is None else self.last
        wide = np.vstack([before, vectors]).astype(np.float64)
        distances = 1 - np.sum(wide[1:] * wide[:-1], axis=1)
        self.distances += distances[1 if self.last is None else 0 :].tolist()
        self.times_s += times_s
        self.first = vectors[:1] if self.first is None else self.first
        self.last = vectors[-1:]


class Worker:
    """One reader and one writer. `identify` and `read` may run at the same time, each once."""

    def __init__(self, assignment: Assignment, folder: Path, device: str = "cpu") -> None:
        self._assignment = assignment
        self._folder = folder
        self._library = Library.open(assignment.library_uri)
        on_device = assignment.reading.decoder == "nvdec"
        self._reader: PieceReader = GpuSampler(device) if on_device else Reader(assignment.limits)
        self.frames = 0
        self.video_s = 0.0

    def close(self) -> None:
        self._reader.close()

    def identify(self, sources: Sequence[Source]) -> IdentifyDone:
        """Fetch each source, if it is remote, and say what it is by its bytes."""
        began = time.monotonic()
        found: list[FetchedVideo | SourceFailed] = []
        for source in sources:
            try:
                found.append(identify(source, self._folder))
            except PipelineError as error:
                found.append(SourceFailed(source, error.stage, type(error).__name__, str(error)))
        return IdentifyDone(tuple(found), {"fetch": time.monotonic() - began})

    def forget(self, identified: FetchedVideo) -> None:
        """Delete the local copy of a remote source."""
        copy = Path(identified.path)
        if copy.is_relative_to(self._folder):
            copy.unlink(missing_ok=True)

    def read(self, chunks: Sequence[Chunk], embed: Embed, may_cut: bool) -> WorkDone:
        """Read pieces, in order, and append their rows; a piece that fails leaves none.

        Raises LeaseLost if another run has taken the library over, and LibraryError if it cannot be written.
        """
        seconds: dict[str, float] = defaultdict(float)
        gathered = [_Gathered() for _ in chunks]
        rows: dict[int, list[FrameRow]] = defaultdict(list)
        waiting_bytes = 0
        embedded = prefetch(self._embedded(chunks, embed, may_cut, gathered, seconds), EMBEDDED_AHEAD)
        try:
            for batch in embedded:
                for index, frames in batch.items():
                    rows[index] += frames
                    waiting_bytes += sum(len(frame.jpeg) for frame in frames)
                enough = sum(map(len, rows.values())) >= self._assignment.frames_a_commit
                if enough or waiting_bytes >= BYTES_A_COMMIT:
                    self._append(chunks, rows, gathered, seconds)
                    waiting_bytes = 0
        finally:
            embedded.close()
        self._append(chunks, rows, gathered, seconds)
        results = tuple(self._result(chunk, each) for chunk, each in zip(chunks, gathered, strict=True))
        for result in results:
            if not isinstance(result, ChunkSplit) and result.chunk.span is None:
                self.forget(result.chunk.identified)
            if isinstance(result, ChunkRead):
                for stage, spent_s in result.summary.seconds.items():
                    seconds[stage] += spent_s
        return WorkDone(results, dict(seconds))

    def _embedded(
        self,
        chunks: Sequence[Chunk],
        embed: Embed,
        may_cut: bool,
        gathered: list[_Gathered],
        seconds: dict[str, float],
    ) -> Generator[dict[int, list[FrameRow]], None, None]:
        """Rows with vectors by piece, a full batch at a time."""
        size = self._assignment.reading.batch
        waiting: list[tuple[int, SampledFrame]] = []
        for index, part in self._parts(chunks, may_cut):
            if not isinstance(part, list):
                gathered[index].end = part
                if isinstance(part, ChunkFailed):
                    waiting = [each for each in waiting if each[0] != index]
                continue
            waiting += [(index, picture) for picture in part]
            while len(waiting) >= size:
                yield self._rows(waiting[:size], embed, gathered, seconds)
                waiting = waiting[size:]
        if waiting:
            yield self._rows(waiting, embed, gathered, seconds)

    def _parts(
        self, chunks: Sequence[Chunk], may_cut: bool
    ) -> Iterator[tuple[int, list[SampledFrame] | ChunkSummary | ChunkFailed | ChunkSplit]]:
        """Every piece's pictures, then how it ended."""
        for index, chunk in enumerate(chunks):
            here = chunk
            try:
                here = self._here(chunk)
                spans = self._spans(here) if may_cut else ()
                if len(spans) > 1:
                    yield index, ChunkSplit(chunk, spans)
                    continue
                for part in self._reader.read(here, self._assignment.reading):
                    yield index, part
            except SpanDamaged as error:
                yield index, ChunkFailed(chunk, "decode", "SpanDamaged", str(error), damaged=True)
            except PipelineError as error:
                yield index, ChunkFailed(chunk, error.stage, type(error).__name__, str(error))
            finally:
                if here is not chunk:
                    self.forget(here.identified)

    def _here(self, chunk: Chunk) -> Chunk:
        """The piece with a path that is there on this machine: a remote source may have been fetched on another."""
        if Path(chunk.identified.path).exists() or not is_remote(chunk.identified.source.uri):
            return chunk
        return Chunk(identify(chunk.identified.source, self._folder), chunk.span, chunk.of, chunk.index)

    def _spans(self, chunk: Chunk) -> tuple[Span, ...]:
        reading = self._assignment.reading
        if chunk.span is not None or reading.cut_s <= 0 or chunk.identified.size_bytes < CUT_FROM_BYTES:
            return ()
        return self._reader.cut(chunk, reading)

    def _rows(
        self,
        batch: list[tuple[int, SampledFrame]],
        embed: Embed,
        gathered: list[_Gathered],
        seconds: dict[str, float],
    ) -> dict[int, list[FrameRow]]:
        with timed(seconds, "embed"):
            inputs = [picture.model_input for _, picture in batch]
            inputs += inputs[-1:] * (self._assignment.reading.batch - len(batch))
            vectors = embed(_stacked(inputs))[: len(batch)]
        rows: dict[int, list[FrameRow]] = defaultdict(list)
        for (index, picture), vector in zip(batch, vectors, strict=True):
            rows[index].append(frame_row(picture, vector))
        for index, frames in rows.items():
            each = gathered[index]
            before_s = each.times_s[-1] if each.times_s else frames[0].time_s
            each.add([frame.time_s for frame in frames], np.stack([frame.vector for frame in frames]))
            self.video_s += frames[-1].time_s - before_s
        self.frames += len(batch)
        return rows

    def _append(
        self,
        chunks: Sequence[Chunk],
        rows: dict[int, list[FrameRow]],
        gathered: list[_Gathered],
        seconds: dict[str, float],
    ) -> None:
        """Append the waiting rows of all pieces but those that have failed by now."""
        with timed(seconds, "write"):
            wanted = {
                index: frames for index, frames in rows.items() if not isinstance(gathered[index].end, ChunkFailed)
            }
            by_video: dict[str, list[FrameRow]] = defaultdict(list)
            for index, frames in wanted.items():
                by_video[chunks[index].identified.video_id] += frames
                gathered[index].appended += len(frames)
            rows.clear()
            if by_video:
                self._library.check_lease(*self._assignment.lease)
                self._library.add_frames(by_video)

    def _result(self, chunk: Chunk, gathered: _Gathered) -> ChunkRead | ChunkFailed | ChunkSplit:
        end = gathered.end
        if end is None:
            raise RuntimeError(f"the reader gave {chunk.identified.source.uri} no end")
        if isinstance(end, ChunkFailed) and gathered.appended:
            discard(self._library, chunk)
        if not isinstance(end, ChunkSummary):
            return end
        ends = list(chain(*(each for each in (gathered.first, gathered.last) if each is not None)))
        return ChunkRead(chunk, end, np.array(gathered.times_s), np.array(gathered.distances), np.array(ends))


def discard(library: Library, chunk: Chunk) -> None:
    """Delete what was appended of a piece; the other parts of its video stay."""
    if chunk.span is None:
        library.discard(chunk.identified.video_id)
    else:
        library.discard_frames(chunk.identified.video_id, chunk.span.first_number, chunk.span.until_number)


def _stacked(inputs: Sequence[Any]) -> Any:
    """One array `[n, 3, h, w]`, or one tensor where the inputs are on a device already."""
    if isinstance(inputs[0], np.ndarray):
        return np.stack(inputs)
    import torch

    return torch.stack(list(inputs))
