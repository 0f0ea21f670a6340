"""Commit of videos: from chunks that were read to rows that readers of the library see, many videos at once."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import numpy as np

from index.clock import first_zero_s
from index.library import Library
from index.rows import FailureRow, SourceRow, VideoRow
from jobs.ingest.messages import ChunkRead
from jobs.ingest.outcomes import SourceOutcome, State, Tally
from pipeline.sampling.sample import ChunkSummary, IngestSettings
from pipeline.shot_detection import Segment, find_segments
from pipeline.sources.fetch import FetchedVideo, Source
from pipeline.subtitles import Line

VIDEOS_AT_ONCE, MOST_AT_ONCE = 32, 500
SHORTEST_WAIT_S, LONGEST_WAIT_S = 1.0, 3.0
"""Half of a commit of 32 videos is the same for 500, and every commit makes the next look at a table slower.

So there is no more than one a second while fewer than 500 wait, and less often where fewer than 32 do.
"""
READING_STAGES = ("fetch", "open", "decode", "write")
"""Failures of these stages are over once the library holds the video; a broken subtitle file stays one."""


@dataclass(frozen=True, slots=True)
class ReadVideo:
    """Video of which all frames and vectors are written, ready to be shown to readers."""

    fetched: FetchedVideo
    row: VideoRow
    segments: tuple[Segment, ...]
    transcript: tuple[Line, ...]
    problem: str | None
    digests: Mapping[str, int]
    """Of frames and vectors, by table."""


def join_chunks(chunks: Sequence[ChunkRead], settings: IngestSettings, space: str) -> ReadVideo:
    """Join the chunks of a video, in order."""
    fetched, first, last = chunks[0].chunk.video, chunks[0].summary, chunks[-1].summary
    with_frames = [chunk for chunk in chunks if len(chunk.times_s)]
    times_s = np.concatenate([chunk.times_s for chunk in with_frames]).tolist()
    distances = _distances(with_frames)
    segments = tuple(find_segments(times_s, distances, last.end_s, settings.window_s))
    source, metadata = fetched.source, first.metadata
    transcript = _lines(first, source.uri)
    row = VideoRow(
        video_id=fetched.video_id,
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
        transcript_lines=len(transcript),
        decode_errors=sum(chunk.summary.decode_errors for chunk in chunks),
        sample_fps=settings.fps,
        space=space,
        state="complete",
        ingested_at=datetime.now(UTC),
    )
    digests: Counter[str] = Counter()
    for chunk in chunks:
        digests.update(chunk.digests)
    problem = "; ".join(first.subtitle_errors) or None
    return ReadVideo(fetched, row, segments, transcript, problem, digests)


def _lines(summary: ChunkSummary, uri: str) -> tuple[Line, ...]:
    """Lines of a video in presentation times, in order; those of sidecars count from where a player starts."""
    zero_s = first_zero_s(uri, summary.start_s)
    lines = (
        replace(line, start_s=line.start_s + zero_s, end_s=line.end_s + zero_s) if line.source == "sidecar" else line
        for line in summary.transcript
    )
    return tuple(sorted(lines, key=lambda line: (line.start_s, line.end_s)))


def _distances(chunks: Sequence[ChunkRead]) -> list[float]:
    """Cosine distances of all neighbouring frames, also across the borders of chunks."""
    distances: list[float] = []
    for number, chunk in enumerate(chunks):
        if number:
            before, after = chunks[number - 1].ends[-1].astype(np.float64), chunk.ends[0].astype(np.float64)
            distances.append(1.0 - float(before @ after))
        distances += chunk.distances.tolist()
    return distances


@dataclass
class VideoCommitter:
    """Collects the outcomes of sources and writes them, dozens of videos a commit.

    A source that carries its stamp is known to the next run. `clock` gives seconds, as `time.monotonic`; `check` raises
    an error once the run may not show videos any more.
    """

    library: Library
    clock: Callable[[], float] = time.monotonic
    check: Callable[[], None] = lambda: None
    tally: Tally = field(default_factory=Tally)
    _videos: list[ReadVideo] = field(default_factory=list)
    _sources: list[SourceRow] = field(default_factory=list)
    _readable: list[str] = field(default_factory=list)
    _failures: list[FailureRow] = field(default_factory=list)
    _flushed: float = field(init=False)

    def __post_init__(self) -> None:
        self._flushed = self.clock()

    def add(self, video: ReadVideo) -> None:
        self._videos.append(video)

    def already_there(self, fetched: FetchedVideo) -> None:
        """Record a source whose video the library holds."""
        self._readable.append(fetched.source.uri)
        self._remember(fetched.source, fetched.video_id)
        self._record(fetched.source, "already there", fetched.video_id)

    def fail(self, source: Source, stage: str, error_class: str, message: str) -> None:
        self._failures.append(_failure(source, stage, error_class, message))
        if stage != "fetch":  # what could not be fetched is tried again by the next run
            self._remember(source, "")
        self._record(source, "failed", problem=message, error_class=error_class)

    @property
    def failed(self) -> int:
        return self.tally.states["failed"]

    @property
    def is_due(self) -> bool:
        """True if enough waits to be written, or has waited long enough."""
        videos, waited_s = len(self._videos), self.clock() - self._flushed
        if videos >= VIDEOS_AT_ONCE:
            return videos >= MOST_AT_ONCE or waited_s > SHORTEST_WAIT_S
        return waited_s > LONGEST_WAIT_S and bool(videos or self._sources or self._failures)

    def flush(self) -> tuple[list[ReadVideo], list[ReadVideo]]:
        """Write all that waits; returns the videos that are complete now, and those that have to be read again."""
        videos, self._videos = self._videos, []
        rejected: tuple[str, ...] = ()
        if videos:
            digests: dict[str, Counter[str]] = defaultdict(Counter)
            for video in videos:
                for name, digest in video.digests.items():
                    digests[name][video.row.video_id] = digest
            writer = self.library.writer
            digests["segments"] = writer.add_segments({video.row.video_id: video.segments for video in videos})
            digests["transcript"] = writer.add_transcript(
                {video.row.video_id: video.transcript for video in videos if video.transcript}
            )
            rejected = writer.complete([video.row for video in videos], self.check, digests)
        complete = [video for video in videos if video.row.video_id not in rejected]
        for video in complete:
            self._record_complete(video)
        if self._readable:
            self.library.ingest_log.clear_failures(self._readable, READING_STAGES)
        if complete:
            self.library.ingest_log.clear_failures([video.row.uri for video in complete])
        if self._failures:
            self.library.ingest_log.add_failures(self._failures)
        if self._sources:
            self.library.ingest_log.add_sources(self._sources)
        self._sources, self._readable, self._failures = [], [], []
        self._flushed = self.clock()
        return complete, [video for video in videos if video.row.video_id in rejected]

    def _record_complete(self, video: ReadVideo) -> None:
        source, row = video.fetched.source, video.row
        if video.problem:
            self._failures.append(_failure(source, "subtitles", "SubtitleError", video.problem))
        self._remember(source, row.video_id)
        damage = row.decode_errors
        self._record(source, "indexed", row.video_id, row.frames, row.duration_s, damage, video.problem)

    def _remember(self, source: Source, video_id: str) -> None:
        stamp = source.stamp
        if stamp is not None:
            self._sources.append(SourceRow(source.uri, video_id, stamp.size_bytes, stamp.mark, datetime.now(UTC)))

    def _record(
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
        outcome = SourceOutcome(
            source.uri, source.title, state, video_id, frames, duration_s, decode_errors, problem, error_class
        )
        self.tally.add(outcome, source.stamp.size_bytes if source.stamp is not None else 0)


def _failure(source: Source, stage: str, error_class: str, message: str) -> FailureRow:
    return FailureRow(source.uri, stage, error_class, message, 1, datetime.now(UTC))
