"""Rows of the chunks that a worker reads, on their way into the library."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from kinodex.index.library import Library
from kinodex.jobs.ingest import messages
from kinodex.pipeline.sample import Chunk, ChunkSummary, FrameRow

ChunkEnd = ChunkSummary | messages.ChunkFailed | messages.ChunkSplit
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
