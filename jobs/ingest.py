"""Many sources into one library, in this process: what `kinodex ingest --local` does.

A video's frames and vectors are written while it is read, in few large appends; its row in `videos` is written last,
so a reader never sees it half there and an interrupted run only has that one video to do again. A source that cannot
be read becomes a row in `failures` and the rest goes on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from index.library import Library
from index.rows import FailureRow, VideoRow
from pipeline.errors import PipelineError
from pipeline.ingest import FrameRow, IngestSettings, VideoSummary, read_video
from pipeline.sources import Source, content_id, local_copy
from pipeline.towers import ImageTower

FRAMES_A_COMMIT = 512
"""Rows kept back before they are appended: about 20 MB of JPEGs, and a few commits for an hour at 1 fps."""

READING_STAGES = ("fetch", "open", "decode")
"""Failures of these stages are over once the library holds the video; a broken subtitle file stays one."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one source."""

    source: Source
    state: Literal["indexed", "already there", "failed"]
    video_id: str | None = None
    frames: int = 0
    duration_s: float = 0.0
    decode_errors: int = 0
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a run stands: `done` of `total` sources ended, and how far the current one is."""

    source: Source
    done: int
    total: int
    frames: int
    video_s: float


@dataclass(frozen=True, slots=True)
class Report:
    """The outcomes of a run and the seconds it took."""

    outcomes: tuple[Outcome, ...]
    seconds: float

    def count(self, state: str) -> int:
        return sum(outcome.state == state for outcome in self.outcomes)

    @property
    def frames(self) -> int:
        return sum(outcome.frames for outcome in self.outcomes if outcome.state == "indexed")

    @property
    def video_s(self) -> float:
        return sum(outcome.duration_s for outcome in self.outcomes if outcome.state == "indexed")


@dataclass
class _Tally:
    """Frames and seconds of video seen so far, for the one who watches."""

    watch: Callable[[Progress], None]
    total: int
    done: int = 0
    frames: int = 0
    ended_s: float = 0.0
    current_s: float = 0.0

    def saw(self, source: Source, rows: Sequence[FrameRow], start_s: float) -> None:
        self.frames += len(rows)
        self.current_s = rows[-1].time_s - start_s
        self.tell(source)

    def ended(self, source: Source) -> None:
        self.done += 1
        self.ended_s, self.current_s = self.ended_s + self.current_s, 0.0
        self.tell(source)

    def tell(self, source: Source) -> None:
        self.watch(Progress(source, self.done, self.total, self.frames, self.ended_s + self.current_s))


@dataclass
class _FrameWriter:
    """Appends a video's rows to the library, many at a time."""

    library: Library
    video_id: str
    waiting: list[FrameRow] = field(default_factory=list)

    def add(self, rows: Sequence[FrameRow]) -> None:
        self.waiting += rows
        if len(self.waiting) >= FRAMES_A_COMMIT:
            self.flush()

    def flush(self) -> None:
        if self.waiting:
            self.library.add_frames(self.video_id, self.waiting)
            self.waiting = []


def ingest(
    sources: Sequence[Source],
    library: Library,
    tower: ImageTower,
    settings: IngestSettings,
    watch: Callable[[Progress], None] = lambda progress: None,
) -> Report:
    """Index every source that the library does not hold yet; bad ones become failure rows.

    Raises a LibraryError (a full disk, say) as it comes: what was complete before stays complete.
    """
    began = time.monotonic()
    tally = _Tally(watch, len(sources))
    outcomes = []
    for source in sources:
        tally.tell(source)
        try:
            outcomes.append(_index_one(source, library, tower, settings, tally))
        except PipelineError as error:
            outcomes.append(_record_failure(source, library, error))
        tally.ended(source)
    library.refresh()
    return Report(tuple(outcomes), time.monotonic() - began)


def _index_one(source: Source, library: Library, tower: ImageTower, settings: IngestSettings, tally: _Tally) -> Outcome:
    with local_copy(source) as path:
        video_id = content_id(path)
        if library.has_video(video_id):
            for stage in READING_STAGES:
                library.clear_failure(source.uri, stage)
            return Outcome(source, "already there", video_id)
        library.discard(video_id)
        summary = _read_into(library, video_id, path, source, tower, settings, tally)
    library.complete(_video_row(video_id, source, summary, settings, library.space_name))
    library.clear_failure(source.uri)
    problem = "; ".join(summary.subtitle_errors) or None
    if problem:
        library.add_failure(_failure(source, "subtitles", "SubtitleError", problem))
    duration_s, damage = summary.duration_s, summary.decode_errors
    return Outcome(source, "indexed", video_id, summary.frames, duration_s, damage, problem)


def _read_into(
    library: Library,
    video_id: str,
    path: Path,
    source: Source,
    tower: ImageTower,
    settings: IngestSettings,
    tally: _Tally,
) -> VideoSummary:
    writer = _FrameWriter(library, video_id)
    first_s: list[float] = []

    def sink(rows: list[FrameRow]) -> None:
        first_s.append(first_s[0] if first_s else rows[0].time_s)
        writer.add(rows)
        tally.saw(source, rows, first_s[0])

    summary = read_video(path, source, settings, tower, sink)
    writer.flush()
    library.add_segments(video_id, summary.segments)
    library.add_transcript(video_id, summary.transcript)
    return summary


def _video_row(video_id: str, source: Source, summary: VideoSummary, settings: IngestSettings, space: str) -> VideoRow:
    facts = summary.facts
    return VideoRow(
        video_id=video_id,
        uri=source.uri,
        title=source.title,
        start_s=summary.start_s,
        duration_s=summary.duration_s,
        fps=facts.fps,
        width_px=facts.width_px,
        height_px=facts.height_px,
        codec=facts.codec,
        frames=summary.frames,
        segments=len(summary.segments),
        transcript_lines=len(summary.transcript),
        decode_errors=summary.decode_errors,
        sample_fps=settings.fps,
        space=space,
        state="complete",
        ingested_at=datetime.now(UTC),
    )


def _failure(source: Source, stage: str, error_class: str, message: str) -> FailureRow:
    return FailureRow(source.uri, stage, error_class, message, 1, datetime.now(UTC))


def _record_failure(source: Source, library: Library, error: PipelineError) -> Outcome:
    library.add_failure(_failure(source, error.stage, type(error).__name__, str(error)))
    return Outcome(source, "failed", problem=str(error))
