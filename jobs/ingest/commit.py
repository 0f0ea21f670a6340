"""Commit of videos: from chunks that were read to rows that readers of the library see, many videos at once."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from kinodex.index.clocks import first_zero_s
from kinodex.index.errors import MetadataConflict
from kinodex.index.library import Library
from kinodex.index.rows import FailureRow, SourceRow, VideoRow
from kinodex.index.spaces.model_names import BUILTIN_SPACE
from kinodex.jobs.addresses import READING_STAGES, settle
from kinodex.jobs.ingest.messages import ChunkRead
from kinodex.pipeline.decoding.tags import OTHER_STREAMS
from kinodex.pipeline.fetch import FetchedVideo
from kinodex.pipeline.filesystems import is_remote, mount_of
from kinodex.pipeline.sample import IngestSettings
from kinodex.pipeline.segments import Segment, find_segments
from kinodex.pipeline.source import Source
from kinodex.pipeline.sources import download_info
from kinodex.pipeline.subtitles.lines import Line

if TYPE_CHECKING:
    from kinodex.jobs.ingest.messages import Executor, WorkQueue

VIDEOS_AT_ONCE, MOST_AT_ONCE = 32, 500
SHORTEST_WAIT_S, LONGEST_WAIT_S = 1.0, 3.0
"""Half of a commit of 32 videos is the same for 500, and every commit makes the next look at a table slower.

So there is no more than one a second while fewer than 500 wait, and less often where fewer than 32 do.
"""


@dataclass(frozen=True, slots=True)
class ReadVideo:
    """Video of which all frames and vectors are written, ready to be shown to readers."""

    fetched: FetchedVideo
    row: VideoRow
    segments: tuple[Segment, ...]
    speech: tuple[Line, ...]
    problem: str | None
    digests: Mapping[str, int]
    """Of frames and vectors, by table."""
    drawn: bool = False
    """True if kinodex drew it."""
    tags: Mapping[str, Any] = field(default_factory=dict)
    """Columns of metadata that its file fills."""


def join_chunks(chunks: Sequence[ChunkRead], settings: IngestSettings, space: str) -> ReadVideo:
    """Join the chunks of a video, in order."""
    fetched, first, last = chunks[0].chunk.video, chunks[0].summary, chunks[-1].summary
    with_frames = [chunk for chunk in chunks if len(chunk.times_s)]
    times_s = np.concatenate([chunk.times_s for chunk in with_frames]).tolist()
    segments = tuple(find_segments(times_s, _distances(with_frames), last.end_s, settings.window_s))
    source, metadata = fetched.source, first.metadata
    zero_s = first_zero_s(source.uri, min(metadata.earliest_s, first.start_s))
    lines = [  # those of sidecars count from where a player starts
        replace(line, start_s=line.start_s + zero_s, end_s=line.end_s + zero_s) if line.source == "sidecar" else line
        for line in first.speech
    ]
    speech = tuple(sorted(lines, key=lambda line: (line.start_s, line.end_s)))
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
        speech_lines=len(speech),
        decode_errors=sum(chunk.summary.decode_errors for chunk in chunks),
        sample_fps=settings.fps,
        space=space,
        state="complete",
        ingested_at=datetime.now(UTC),
        zero_s=zero_s,
    )
    digests: Counter[str] = Counter()
    for chunk in chunks:
        digests.update(chunk.digests)
    problem = "; ".join(first.subtitle_errors) or None
    return ReadVideo(fetched, row, segments, speech, problem, digests, metadata.drawn, metadata.tags)


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

    A source that carries its stamp is known to the next run. `check` raises once the run may not show videos any more.
    """

    library: Library
    clock: Callable[[], float] = time.monotonic
    check: Callable[[], None] = lambda: None
    tally: Tally = field(default_factory=lambda: Tally())
    _videos: list[ReadVideo] = field(default_factory=list)
    _sources: list[SourceRow] = field(default_factory=list)
    _readable: list[str] = field(default_factory=list)
    _failures: list[FailureRow] = field(default_factory=list)
    _found: list[FetchedVideo] = field(default_factory=list)
    """Sources of videos that the library holds, until it is known if the videos moved there."""
    _flushed: float = field(init=False)

    def __post_init__(self) -> None:
        self._flushed = self.clock()

    def add(self, video: ReadVideo) -> None:
        self._videos.append(video)

    def already_there(self, fetched: FetchedVideo) -> None:
        """Record a source whose video the library holds."""
        self._readable.append(fetched.source.uri)
        self._remember(fetched.source, fetched.video_id)
        self._found.append(fetched)

    def fail(self, source: Source, stage: str, error_class: str, message: str) -> None:
        self._failures.append(_failure(source, stage, error_class, message))
        if stage not in ("fetch", "space"):  # what could not be fetched, or not without --anyway, is tried again
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
        return waited_s > LONGEST_WAIT_S and bool(videos or self._found or self._sources or self._failures)

    def flush(self, *, is_last: bool = False) -> tuple[list[ReadVideo], list[ReadVideo]]:
        """Write all that waits; returns the videos that are complete now, and those that have to be read again."""
        videos, self._videos = self._videos, []
        rejected: tuple[str, ...] = ()
        if videos:
            digests: dict[str, Counter[str]] = defaultdict(Counter)
            for video in videos:
                for name, digest in video.digests.items():
                    digests[name][video.row.video_id] = digest
            writer = self.library.writer
            if self.library.space_name == BUILTIN_SPACE:
                writer.note_undrawn([video.row.video_id for video in videos if not video.drawn])
            digests["segments"] = writer.add_segments({video.row.video_id: video.segments for video in videos})
            digests["speech"] = writer.add_speech(
                {video.row.video_id: video.speech for video in videos if video.speech}
            )
            self._write_tags(videos)
            rejected = writer.complete([video.row for video in videos], self.check, digests)
        complete = [video for video in videos if video.row.video_id not in rejected]
        for video in complete:
            self._record_complete(video)
        if self._readable:
            self.library.ingest_log.clear_failures(self._readable, READING_STAGES)
        if complete:
            self.library.ingest_log.clear_failures([video.row.uri for video in complete])
        if folders := _folders([*self._readable, *(video.row.uri for video in complete)]):
            self.library.ingest_log.clear_failures(folders, READING_STAGES)  # they could be listed
        if self._failures:
            self.library.ingest_log.add_failures(self._failures)
        if self._sources:
            self.library.ingest_log.add_sources(self._sources)
        self._sources, self._readable, self._failures = [], [], []
        self._settle(is_last)
        self._flushed = self.clock()
        return complete, [video for video in videos if video.row.video_id in rejected]

    def _write_tags(self, videos: Sequence[ReadVideo]) -> None:
        """Set the columns that files fill. Values that do not fit the library's columns are failures of that stage."""
        tags = {video.row.video_id: {**video.tags, **download_info(video.row.uri)} for video in videos}
        if not any(tags.values()):
            return
        names = {video.row.video_id: video.row.title for video in videos}
        try:
            self.library.metadata.write(tags, names)
        except MetadataConflict:
            for video in videos:
                try:
                    self.library.metadata.write({video.row.video_id: tags[video.row.video_id]}, names)
                except MetadataConflict as error:
                    self._failures.append(_failure(video.fetched.source, "metadata", type(error).__name__, str(error)))

    def _settle(self, is_last: bool) -> None:
        if not self._found:
            return
        settled = settle(self.library, self._found, self.check, is_last=is_last)
        for each in self._found:
            if each not in settled.waiting:
                old = settled.moved_from.get(each.source.uri)
                state: State = "already there" if old is None else "moved"
                self._record(each.source, state, video_id=each.video_id, moved_from=old)
        self._found = settled.waiting

    def _record_complete(self, video: ReadVideo) -> None:
        source, row = video.fetched.source, video.row
        if video.problem:
            self._failures.append(_failure(source, "subtitles", "SubtitleError", video.problem))
        self._remember(source, row.video_id)
        facts = {name: getattr(row, name) for name in ("video_id", "frames", "duration_s", "decode_errors")}
        others = video.tags.get(OTHER_STREAMS)
        left_out = f"of its video streams one is indexed, and not {others}" if others else None
        self._record(source, "indexed", **facts, problem="; ".join(filter(None, [video.problem, left_out])) or None)

    def _remember(self, source: Source, video_id: str) -> None:
        stamp, now, mount = source.stamp, datetime.now(UTC), mount_of(source.uri)
        if stamp is not None or video_id:
            size_bytes, mark = (None, "") if stamp is None else (stamp.size_bytes, stamp.mark)
            self._sources.append(SourceRow(source.uri, video_id, size_bytes, mark, now, mount))

    def _record(self, source: Source, state: State, **facts: Any) -> None:
        size_bytes = source.stamp.size_bytes if source.stamp is not None else 0
        self.tally.add(SourceOutcome(source.uri, source.title, state, **facts), size_bytes)


def _folders(uris: Iterable[str]) -> list[str]:
    """List the local folders that these files lie in, however deep."""
    return sorted({str(each) for uri in uris if not is_remote(uri) for each in PurePosixPath(uri).parents})


def _failure(source: Source, stage: str, error_class: str, message: str) -> FailureRow:
    return FailureRow(source.uri, stage, error_class, message, 1, datetime.now(UTC))


# Reports of an ingest: the outcome of each source, its progress, and its final report.

SHOW_EVERY_S = 0.25

State = Literal["indexed", "already there", "moved", "failed"]
STATES: tuple[State, ...] = get_args(State)

DECODE_STAGES = ("fetch", "decode", "jpeg", "prepare")
"""Stages that count as `decode` in the utilisation."""

OUTCOMES_KEPT = 10_000
"""Outcomes of each state that a run keeps in full. Its counts are of all, and the library's tables hold each source."""


@dataclass(frozen=True, slots=True)
class SourceOutcome:
    """Outcome of one source. Times are in seconds of video."""

    uri: str
    title: str
    state: State
    video_id: str | None = None
    frames: int = 0
    duration_s: float = 0.0
    decode_errors: int = 0
    problem: str | None = None
    error_class: str | None = None
    moved_from: str | None = None
    """The address that a moved video had until now."""


@dataclass(frozen=True, slots=True)
class Totals:
    """Numbers of all outcomes of a run: sources by state, failures by class, and what was indexed."""

    states: Mapping[str, int]
    failures: Mapping[str, int]
    frames: int
    video_s: float


@dataclass
class Tally:
    """Outcomes as they come: the first of each state in full, and the numbers of all."""

    outcomes: list[SourceOutcome] = field(default_factory=list)
    states: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    frames: int = 0
    video_s: float = 0.0
    bytes_done: int = 0

    def add(self, outcome: SourceOutcome, size_bytes: int = 0) -> None:
        """Count an outcome of a source of this size."""
        if self.states[outcome.state] < OUTCOMES_KEPT:
            self.outcomes.append(outcome)
        self.states[outcome.state] += 1
        self.bytes_done += size_bytes
        if outcome.error_class:
            self.failures[outcome.error_class] += 1
        if outcome.state == "indexed":
            self.frames += outcome.frames
            self.video_s += outcome.duration_s

    @property
    def done(self) -> int:
        """Number of sources that have their outcome."""
        return self.states.total()

    def totals(self) -> Totals:
        """Return the numbers so far."""
        return Totals(dict(self.states), dict(self.failures.most_common()), self.frames, self.video_s)


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a run. `busy` is the part of its workers' time that each stage took so far, 0 to 1."""

    done: int
    total: int
    failed: int
    frames: int
    video_s: float
    bytes_done: int
    bytes_total: int | None
    """None where the size of some sources is not known before they are fetched."""
    busy: Mapping[str, float]
    bottleneck: str | None
    current: str
    states: Mapping[str, int] = field(default_factory=dict)
    """Sources by the state of their outcome."""
    failures: Mapping[str, int] = field(default_factory=dict)
    """Sources that failed, by the class of the error."""
    seconds: Mapping[str, float] = field(default_factory=dict)
    """As `seconds_by_stage` of the report, of the tasks that ended so far."""
    queues: Mapping[str, int] = field(default_factory=dict)
    """Tasks: those that wait to `identify` or `read`, and those `running`."""
    workers: Mapping[str, int] = field(default_factory=dict)
    """Numbers of them: `reader`, `embedder`."""
    retried: int = 0
    outcomes: Sequence[SourceOutcome] = ()
    """Outcomes so far, as the report will have them; the same list grows from one progress to the next."""


Watch = Callable[[Progress], None]
"""Gets each progress of a run."""


class ProgressReports:
    """Shows the progress of one run to its watches. `seconds` by stage, and the title that is read, are filled in."""

    def __init__(
        self, watches: Sequence[Watch], executor: Executor, work: WorkQueue, tally: Tally, clock: Callable[[], float]
    ) -> None:
        self._watches, self._executor, self._work, self._tally, self._clock = watches, executor, work, tally, clock
        self._began = self._shown = clock()
        self.seconds: Counter[str] = Counter()
        self.current = ""

    def show(self, running: int, retried: int, *, if_due: bool = False) -> None:
        """Show the progress with so many tasks that run and so many that were retried.

        `if_due`: unless that was done a moment ago, since counting asks every worker.
        """
        if if_due and self._clock() - self._shown < SHOW_EVERY_S:
            return

        self._shown = self._clock()
        work, tally, executor = self._work, self._tally, self._executor
        frames, video_s = executor.counts()  # on Ray, as of a moment ago
        busy = utilisation(self.seconds, executor.readers, executor.embedders, self._clock() - self._began)
        progress = Progress(
            done=tally.done,
            total=work.total,
            failed=tally.states["failed"],
            frames=max(frames, tally.frames),
            video_s=max(video_s, tally.video_s),
            bytes_done=tally.bytes_done,
            bytes_total=work.bytes_total,
            busy=busy,
            bottleneck=max(busy, key=lambda stage: busy[stage]) if any(busy.values()) else None,
            current=self.current,
            states=dict(tally.states),
            failures=dict(tally.failures),
            seconds=dict(self.seconds),
            queues={"identify": work.bundles, "read": work.reads, "running": running},
            workers={"reader": executor.readers, "embedder": executor.embedders},
            retried=retried,
            outcomes=tally.outcomes,
        )
        for watch in self._watches:
            watch(progress)


@dataclass(frozen=True, slots=True)
class IngestReport:
    """Report of a run: outcomes, and where its time went; kept in the library as one row of `runs`.

    `outcomes` has the first `OUTCOMES_KEPT` of each state; `count`, `frames` and `video_s` are of all.
    `seconds_by_stage` are summed over workers; `utilisation` is the part of the time that those who do a stage did it.
    """

    run_id: str
    started_at: datetime
    seconds: float
    outcomes: tuple[SourceOutcome, ...]
    left_out: int = 0
    """Sources not read again: known to the library, or failed before and unchanged."""
    stopped: str | None = None
    """Why the run ended before its sources did (--fail-fast, --max-failures), else None."""
    seconds_by_stage: Mapping[str, float] = field(default_factory=dict)
    utilisation: Mapping[str, float] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    arithmetic: str = ""
    """Arithmetic that made the vectors; of several embedders, that of the first. Empty if none was made."""
    workers: int = 1
    embedders: int = 1
    retried: int = 0
    """Tasks retried because a worker was lost."""
    fell_back: Mapping[str, int] = field(default_factory=dict)
    """Videos that a decoder gave up and PyAV read, by reason."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """What --metadata and --path-pattern set: see `kinodex.jobs.metadata.MetadataReport`."""
    totals: Totals | None = None
    """Numbers of all outcomes; None where `outcomes` are all there are."""

    @property
    def numbers(self) -> Totals:
        """Numbers of all outcomes."""
        if self.totals is not None:
            return self.totals
        tally = Tally()
        for outcome in self.outcomes:
            tally.add(outcome)
        return tally.totals()

    def count(self, state: State) -> int:
        return self.numbers.states.get(state, 0)

    @property
    def frames(self) -> int:
        return self.numbers.frames

    @property
    def video_s(self) -> float:
        return self.numbers.video_s


def summary(report: IngestReport) -> dict[str, Any]:
    """Numbers of a report, as `runs` keeps them: outcomes counted by state, failures by class."""
    counted = ("outcomes", "totals")
    numbers = report.numbers
    return {each.name: getattr(report, each.name) for each in fields(report) if each.name not in counted} | {
        "counts": {state: numbers.states.get(state, 0) for state in STATES},
        "failures_by_class": dict(numbers.failures),
        "frames": numbers.frames,
        "video_s": numbers.video_s,
    }


def utilisation(seconds: Mapping[str, float], readers: int, embedders: int, wall_s: float) -> dict[str, float]:
    """Part of the time that workers and embedders were busy, 0 to 1, by stage: decode, embed, write."""
    wall_s = max(wall_s, 1e-9)
    decode_s = sum(seconds.get(stage, 0.0) for stage in DECODE_STAGES)
    return {
        "decode": decode_s / (wall_s * readers),
        "embed": seconds.get("embed", 0.0) / (wall_s * max(embedders, readers, 1)),
        "write": seconds.get("write", 0.0) / (wall_s * readers),
    }
