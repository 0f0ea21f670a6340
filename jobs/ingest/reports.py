"""Reports of an ingest: the outcome of each source, its progress, and its final report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, get_args

if TYPE_CHECKING:
    from kinodex.jobs.ingest.messages import Executor
    from kinodex.jobs.ingest.work_queue import WorkQueue


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
        """Show the progress with this many tasks that run and this many that were retried.

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
    """What --metadata and --path-pattern set: see `kinodex.jobs.metadata.update.MetadataReport`."""
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
    """Return the part of the time that workers and embedders were busy, 0 to 1, by stage: decode, embed, write."""
    wall_s = max(wall_s, 1e-9)
    decode_s = sum(seconds.get(stage, 0.0) for stage in DECODE_STAGES)
    return {
        "decode": decode_s / (wall_s * readers),
        "embed": seconds.get("embed", 0.0) / (wall_s * max(embedders, readers, 1)),
        "write": seconds.get("write", 0.0) / (wall_s * readers),
    }
