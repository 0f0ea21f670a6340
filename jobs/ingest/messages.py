"""What is said between the one who hands out the work of an ingest and its workers; all of it can be sent."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipeline.decoding.spans import Span
from pipeline.sampling.sandbox import Limits
from pipeline.sampling.types import Chunk, FetchedVideo, PieceSummary, SamplingSettings
from pipeline.sources.discover import Source


@dataclass(frozen=True, slots=True)
class Assignment:
    """All that a worker has to know, once."""

    library_uri: str
    lease: tuple[str, str]
    """Name and token of the run's lease; a worker whose run lost it writes nothing more."""
    reading: SamplingSettings
    limits: Limits
    frames_a_commit: int


@dataclass(frozen=True, slots=True)
class SourceFailed:
    """A source that could not be fetched or identified."""

    source: Source
    stage: str
    error_class: str
    message: str


@dataclass(frozen=True, slots=True)
class ChunkRead:
    """A piece of which all frames and vectors are in the library.

    `times_s` `[n]`; `distances` `[n - 1]`, cosine distance of each frame to the one before; `ends` `[2, dim]`,
    the first and the last vector (`[0, dim]` where the piece has no frame).
    """

    chunk: Chunk
    summary: PieceSummary
    times_s: NDArray[np.float64]
    distances: NDArray[np.float64]
    ends: NDArray[np.float16]


@dataclass(frozen=True, slots=True)
class ChunkFailed:
    """A piece that could not be read; nothing of it is in the library. `damaged`: it may go well read as a whole."""

    chunk: Chunk
    stage: str
    error_class: str
    message: str
    damaged: bool = False


@dataclass(frozen=True, slots=True)
class ChunkSplit:
    """A long video that is better read in parts; nothing of it is in the library yet."""

    chunk: Chunk
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class WorkDone:
    """What came of one `read`, and the seconds it took by stage."""

    results: tuple[ChunkRead | ChunkFailed | ChunkSplit, ...]
    seconds: dict[str, float]


@dataclass(frozen=True, slots=True)
class IdentifyDone:
    """What came of one `identify`, and the seconds it took."""

    results: tuple[FetchedVideo | SourceFailed, ...]
    seconds: dict[str, float]
