"""From what workers read to what readers of the library see: many videos at once, their rows in `videos` last."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np

from index.library import Library
from index.rows import FailureRow, SourceRow, VideoRow
from jobs.ingest.messages import ChunkRead
from jobs.ingest.outcomes import SourceOutcome, State
from pipeline.sampling.types import IngestSettings
from pipeline.shot_detection import Segment, find_segments
from pipeline.sources.discover import Source, Stamp
from pipeline.sources.fetch import FetchedVideo
from pipeline.subtitles.cues import Line

VIDEOS_AT_ONCE = 32
LONGEST_WAIT_S = 3.0
READING_STAGES = ("fetch", "open", "decode")
"""Failures of these stages are over once the library holds the video; a broken subtitle file stays one."""


@dataclass(frozen=True, slots=True)
class ReadVideo:
    """A video of which all frames and vectors are written, ready to be shown."""

    identified: FetchedVideo
    row: VideoRow
    segments: tuple[Segment, ...]
    transcript: tuple[Line, ...]
    problem: str | None


def joined(parts: Sequence[ChunkRead], settings: IngestSettings, space: str) -> ReadVideo:
    """One video from its pieces, in order."""
    identified, first, last = parts[0].chunk.video, parts[0].summary, parts[-1].summary
    with_frames = [part for part in parts if len(part.times_s)]
    times_s = np.concatenate([part.times_s for part in with_frames]).tolist()
    distances = _distances(with_frames)
    segments = tuple(find_segments(times_s, distances, last.end_s, settings.window_s))
    source, metadata = identified.source, first.metadata
    row = VideoRow(
        video_id=identified.video_id,
        uri=source.uri,
        title=source.title,
        start_s=first.start_s,
        duration_s=last.end_s - first.start_s,
        fps=metadata.fps,
        width_px=metadata.width_px,
        height_px=metadata.height_px,
        codec=metadata.codec,
        frames=len(times_s),
        segments=len(segments),
        transcript_lines=len(first.transcript),
        decode_errors=sum(part.summary.decode_errors for part in parts),
        sample_fps=settings.fps,
        space=space,
        state="complete",
        ingested_at=datetime.now(UTC),
    )
    return ReadVideo(identified, row, segments, tuple(first.transcript), "; ".join(first.subtitle_errors) or None)


def _distances(parts: Sequence[ChunkRead]) -> list[float]:
    """Cosine distances of all neighbouring frames, across the seams too."""
    distances: list[float] = []
    for number, part in enumerate(parts):
        if number:
            before, after = parts[number - 1].ends[-1].astype(np.float64), part.ends[0].astype(np.float64)
            distances.append(1.0 - float(before @ after))
        distances += part.distances.tolist()
    return distances


@dataclass
class VideoCommitter:
    """Collects what became of sources and writes it, a few dozen videos a commit."""

    library: Library
    stamps: Mapping[str, Stamp | None]
    outcomes: list[SourceOutcome] = field(default_factory=list)
    states: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    frames: int = 0
    video_s: float = 0.0
    bytes_done: int = 0
    _videos: list[ReadVideo] = field(default_factory=list)
    _sources: list[SourceRow] = field(default_factory=list)
    _over: list[str] = field(default_factory=list)
    _failures: list[FailureRow] = field(default_factory=list)
    _flushed: float = field(default_factory=time.monotonic)

    def read(self, video: ReadVideo) -> None:
        self._videos.append(video)

    def held(self, identified: FetchedVideo) -> None:
        """The library has this video already."""
        self._over.append(identified.source.uri)
        self._known(identified.source, identified.video_id)
        self._ended(identified.source, "already there", identified.video_id)

    def fail(self, source: Source, stage: str, error_class: str, message: str) -> None:
        self._failures.append(_failure(source, stage, error_class, message))
        if stage != "fetch":  # what could not be fetched is tried again by the next run
            self._known(source, "")
        self.failures[error_class] += 1
        self._ended(source, "failed", problem=message, error_class=error_class)

    @property
    def failed(self) -> int:
        return self.states["failed"]

    @property
    def is_due(self) -> bool:
        """Whether enough has come together, or has waited long enough, to be written."""
        waiting = len(self._videos) + len(self._sources) + len(self._failures)
        return len(self._videos) >= VIDEOS_AT_ONCE or (
            waiting > 0 and time.monotonic() - self._flushed > LONGEST_WAIT_S
        )

    def flush(self) -> tuple[list[ReadVideo], list[ReadVideo]]:
        """Write all that waits. Returns the videos that are complete now, and those that have to be read again."""
        videos, self._videos = self._videos, []
        rejected: tuple[str, ...] = ()
        if videos:
            self.library.add_segments({video.row.video_id: video.segments for video in videos})
            self.library.add_transcript({video.row.video_id: video.transcript for video in videos if video.transcript})
            rejected = self.library.complete([video.row for video in videos])
        complete = [video for video in videos if video.row.video_id not in rejected]
        for video in complete:
            self._shown(video)
        if self._over:
            self.library.clear_failures(self._over, READING_STAGES)
        if complete:
            self.library.clear_failures([video.row.uri for video in complete])
        if self._failures:
            self.library.add_failures(self._failures)
        if self._sources:
            self.library.add_sources(self._sources)
        self._sources, self._over, self._failures = [], [], []
        self._flushed = time.monotonic()
        return complete, [video for video in videos if video.row.video_id in rejected]

    def _shown(self, video: ReadVideo) -> None:
        source, row = video.identified.source, video.row
        if video.problem:
            self._failures.append(_failure(source, "subtitles", "SubtitleError", video.problem))
        self._known(source, row.video_id)
        damage = row.decode_errors
        self._ended(source, "indexed", row.video_id, row.frames, row.duration_s, damage, video.problem)

    def _known(self, source: Source, video_id: str) -> None:
        stamp = self.stamps.get(source.uri)
        if stamp is not None:
            self._sources.append(SourceRow(source.uri, video_id, stamp.size_bytes, stamp.mark, datetime.now(UTC)))

    def _ended(
        self,
        source: Source,
        state: State,
        video_id: str | None = None,
        frames: int = 0,
        duration_s: float = 0.0,
        decode_errors: int = 0,
        problem: str | None = None,
        error_class: str | None = None,
    ) -> None:
        stamp = self.stamps.get(source.uri)
        self.bytes_done += stamp.size_bytes if stamp is not None else 0
        self.states[state] += 1
        self.frames += frames
        self.video_s += duration_s
        self.outcomes.append(
            SourceOutcome(
                source.uri, source.title, state, video_id, frames, duration_s, decode_errors, problem, error_class
            )
        )


def _failure(source: Source, stage: str, error_class: str, message: str) -> FailureRow:
    return FailureRow(source.uri, stage, error_class, message, 1, datetime.now(UTC))
