"""Add what models make of videos to those of a library that lack it: `kinodex add`.

An addition's rows are made video by video from what the library holds (speech: from its source), written for several
videos at once, and shown to readers last, by one row in `additions`. The next run deletes what a killed one left, under
the lease of the addition. A video whose rows cannot be made becomes a failure row; the next run tries it again.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import CancelledError, Executor
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Protocol, Self, runtime_checkable

from kinodex.agent.errors import ENDS_ALL, ModelRejected, ModelUnreachable, NoCompletion, NoUsableReply
from kinodex.agent.protocol.exchange import Usage
from kinodex.errors import KinodexError
from kinodex.index.errors import DamagedRows, UnknownVideo
from kinodex.index.library import Library
from kinodex.index.rows import FailureRow, RunRow, VideoRow
from kinodex.index.spaces.embedders import joined_arithmetic
from kinodex.index.store.indexes import refresh
from kinodex.jobs.batch import Batch, Limits, in_turn
from kinodex.jobs.errors import CostReached
from kinodex.pipeline.errors import ModelUnusable, PipelineError

NO_COST = Usage()


@dataclass(frozen=True, slots=True)
class AddedRows:
    """Rows of one video before they are written; `problem` says which of them are missing.

    `count` is the number of rows that the video then has, with those that stay of an earlier run; `faults` of them
    only say why a part has none. `failed` says why there are none at all, although `usage` was spent.
    """

    rows: Any
    count: int
    problem: str | None = None
    usage: Usage = NO_COST
    arithmetic: str = ""
    failed: Exception | None = None
    calls: int = 0
    invalid: int = 0
    """Requests to a model, and those whose reply could not be used."""
    faults: int = 0


class Addition(Protocol):
    """Something that is added to the videos of one library, with its models; `Addable.open` makes it."""

    @property
    def name(self) -> str:
        """One of `kinodex.index.store.schema.STAGES`."""

    @property
    def model(self) -> str:
        """The model's name in rows and additions: the same name, the same rows."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings that the rows depend on, as JSON can hold them; stored with every addition."""

    def prepare(self) -> None:
        """Prepare the library's tables; raises errors that would end the whole run."""

    def again(self) -> Collection[str]:
        """Ids of the videos that have rows, and get them again."""

    def rows_of(self, video: VideoRow) -> AddedRows:
        """Make the rows of one video; raises a PipelineError or `ModelRejected` if that fails."""

    def write(self, rows: Mapping[str, Any]) -> None:
        """Append the rows of several videos."""


@runtime_checkable
class ConcurrentAddition(Protocol):
    """Addition that works on several videos together, because it waits for an endpoint more than it computes."""

    @property
    def pool(self) -> Executor | None:
        """The threads that make rows; None: one video after the other."""

    @property
    def at_once(self) -> int:
        """The most that the videos in progress together may weigh."""

    def weight(self, video: VideoRow) -> int:
        """About how much work a video makes."""


class Addable(Protocol):
    """Something that can be added: a stage by its settings, or texts that were read; small enough to be sent."""

    @property
    def name(self) -> str:
        """One of `kinodex.index.store.schema.STAGES`."""

    @property
    def runs_on(self) -> str:
        """The device of the model: auto, cpu, cuda, ..."""

    def open(self, library: Library) -> AbstractContextManager[Addition]:
        """Load the models, which are let go of at the end; raises errors that would end the whole run."""

    def share(self, processes: int) -> Self:
        """Make the same for each of several processes that share its work."""


@runtime_checkable
class Finishing(Protocol):
    """Something that is not at its end once its rows are there."""

    def finish(self, library: Library) -> None:
        """Do what follows a run, which holds nothing any more."""


@dataclass(frozen=True, slots=True)
class VideoOutcome:
    """Outcome of one video: `rows` written, perhaps not all for a `problem`, or none for an `error_class`.

    `faults` of the rows only say why a part has none.
    """

    video_id: str
    uri: str
    title: str
    rows: int = 0
    problem: str | None = None
    error_class: str | None = None
    usage: Usage = NO_COST
    arithmetic: str = ""
    calls: int = 0
    invalid: int = 0
    faults: int = 0

    @property
    def is_failed(self) -> bool:
        return self.error_class is not None

    @classmethod
    def failed(cls, video: VideoRow, problem: str, error_class: str, usage: Usage = NO_COST) -> VideoOutcome:
        return cls(video.video_id, video.uri, video.title, 0, problem, error_class, usage)


@dataclass(frozen=True, slots=True)
class AddReport:
    """Report of a run: its outcomes video by video, and the seconds it took."""

    stage: str
    model: str
    outcomes: Sequence[VideoOutcome]
    seconds: float

    @property
    def added(self) -> int:
        return len(self.outcomes) - self.failed

    @property
    def failed(self) -> int:
        return sum(outcome.is_failed for outcome in self.outcomes)

    @property
    def rows(self) -> int:
        return sum(outcome.rows - outcome.faults for outcome in self.outcomes)

    @property
    def incomplete(self) -> int:
        """Videos of which a part is missing; `--retry-failed` tries it again."""
        return sum(bool(outcome.problem) and not outcome.is_failed for outcome in self.outcomes)

    @property
    def usage(self) -> Usage:
        return sum((outcome.usage for outcome in self.outcomes), NO_COST)

    @property
    def calls(self) -> int:
        return sum(outcome.calls for outcome in self.outcomes)

    @property
    def invalid(self) -> int:
        """Replies that could not be used."""
        return sum(outcome.invalid for outcome in self.outcomes)

    @property
    def arithmetic(self) -> str:
        """Every arithmetic that made vectors; empty where none were made."""
        return joined_arithmetic(outcome.arithmetic for outcome in self.outcomes)


VIDEOS_A_COMMIT = 8
SECONDS_A_COMMIT = 30.0
"""Rows are written after this many videos or so long: a kill loses no more of a slow model's work."""

Watch = Callable[[int, int, VideoOutcome], None]
"""Gets the number of videos that are done, of all videos, and the outcome of the last one."""
LeaseKey = tuple[str, str]
"""Name and token of the lease under which rows are written."""
Take = Callable[[Sequence[VideoOutcome]], object]
"""Gets the outcomes of videos whose rows are written."""
Run = Callable[[Library, Addable, Addition, Sequence[VideoRow], LeaseKey, Take], None]
"""Makes and writes the rows of videos, a few at a time, in any order."""
Made = tuple[VideoOutcome, AddedRows | None]
UNHEARD = {ModelUnreachable.__name__, NoCompletion.__name__}
SPENT = CostReached.__name__


def add(
    library: Library,
    stage: Addable,
    video_ids: Sequence[str] | None = None,
    watch: Watch = lambda done, total, last: None,
    executor: Run | None = None,
) -> AddReport:
    """Add rows to every complete video, or to these, where the model has not added them yet, or is to again.

    Raises LibraryBusy if another run adds the same now, ModelUnusable or a KinodexError if nothing can be added.
    """
    began, started_at = time.monotonic(), datetime.now(UTC)
    outcomes: list[VideoOutcome] = []
    with (
        library.lease(f"add {stage.name}", f"kinodex add {stage.name}") as lease,
        stage.open(library) as addition,
    ):
        addition.prepare()
        library.additions.discard_leftovers(addition.name, addition.model)
        videos = pending_videos(library, addition.model, video_ids, addition.again(), addition.name)

        def take(batch: Sequence[VideoOutcome]) -> None:
            lease.check()
            for outcome in commit_outcomes(library, addition, batch):
                outcomes.append(outcome)
                watch(len(outcomes), len(videos), outcome)

        (executor or add_in_process)(library, stage, addition, videos, (lease.name, lease.token), take)
        report = AddReport(addition.name, addition.model, outcomes, time.monotonic() - began)
        if outcomes:
            library.ingest_log.add_run(_run_row(addition, report, started_at))
            refresh(library.tables)
    if isinstance(stage, Finishing):
        stage.finish(library)
    return report


def pending_videos(
    library: Library, model: str, video_ids: Collection[str] | None, again: Collection[str], stage: str
) -> list[VideoRow]:
    """List the videos that a run would work on: those that lack the stage by the model, and those `again`."""
    lacking = {row.video_id for row in library.additions.pending(stage, model)}.union(again)
    chosen = lacking if video_ids is None else lacking.intersection(video_ids)
    return [row for row in library.videos() if row.video_id in chosen]


def add_in_process(
    library: Library, stage: Addable, addition: Addition, videos: Sequence[VideoRow], lease: LeaseKey, take: Take
) -> None:
    """Make and write the rows of videos in this process; `take` gets their outcomes as they are written.

    An error that ends the run, such as a lost lease, is raised once all that was made before it is written. A video
    without any reply fails only if others get some: an endpoint that is gone is no failure of theirs.
    """
    pool, at_once, weight = None, 1, lambda video: 1
    if isinstance(addition, ConcurrentAddition):
        pool, at_once, weight = addition.pool, addition.at_once, addition.weight
    work = partial(add_to_video, library, addition)
    batch: Batch[VideoRow] = Batch(Limits(at_once), "videos", weight=weight)
    rows, unheard = _Rows(library, addition, lease, take), list[Made]()

    def done(video: VideoRow, made: Made) -> None:
        outcome, _ = made
        if outcome.error_class == SPENT:
            batch.stop(CostReached(outcome.problem or SPENT))
        elif outcome.error_class in UNHEARD:
            unheard.append(made)
            batch.unheard(video.video_id, outcome.problem)
        else:
            batch.heard()
            rows.add(*(() if batch.end else unheard), made)
            unheard.clear()

    try:
        batch.run(videos, in_turn(work) if pool is None else partial(pool.submit, work), done)
    except Exception:
        rows.write()
        raise
    rows.add(*unheard)
    rows.write()


@dataclass(slots=True)
class _Rows:
    """Rows on their way into the library: those of several videos, or of a while, are written together."""

    library: Library
    addition: Addition
    lease: LeaseKey
    take: Take
    waiting: list[Made] = field(default_factory=list)
    written: float = field(default_factory=time.monotonic)

    def add(self, *made: Made) -> None:
        self.waiting += made
        if len(self.waiting) >= VIDEOS_A_COMMIT or time.monotonic() - self.written >= SECONDS_A_COMMIT:
            self.write()

    def write(self) -> None:
        waiting, self.waiting = self.waiting, []
        if not waiting:
            return
        self.library.guard(*self.lease)
        rows = {outcome.video_id: made.rows for outcome, made in waiting if made is not None and made.count}
        if rows:
            self.addition.write(rows)
        self.take([outcome for outcome, _ in waiting])
        self.written = time.monotonic()


def add_to_video(library: Library, addition: Addition, video: VideoRow) -> Made:
    """Make the rows of one video, not written yet; None if that fails. Raises what every other video would meet too."""
    try:
        made = addition.rows_of(video)
    except (ModelUnusable, CancelledError, *ENDS_ALL):
        raise
    except (PipelineError, ModelRejected, ModelUnreachable, NoUsableReply, DamagedRows, CostReached) as error:
        return VideoOutcome.failed(video, str(error), type(error).__name__), None
    except UnknownVideo:
        if library.visible.videos([video.video_id]):
            raise
        return VideoOutcome.failed(video, "it was removed from the library while this ran", "UnknownVideo"), None
    except KinodexError:
        raise
    except Exception as error:  # a model's library met a video that it cannot take: the others may be sound
        kind = type(error).__name__
        return VideoOutcome.failed(video, f"{kind}: {error}", kind), None
    if made.failed is not None:
        failed = VideoOutcome.failed(video, str(made.failed), type(made.failed).__name__, made.usage)
        return replace(failed, calls=made.calls, invalid=made.invalid), None
    facts: dict[str, Any] = {
        name: getattr(made, name) for name in ("problem", "usage", "arithmetic", "calls", "invalid", "faults")
    }
    return VideoOutcome(video.video_id, video.uri, video.title, made.count, **facts), made


def commit_outcomes(library: Library, addition: Addition, outcomes: Sequence[VideoOutcome]) -> list[VideoOutcome]:
    """Record the outcomes of videos whose rows are written, and last of all show the good ones to readers."""
    good = [outcome for outcome in outcomes if not outcome.is_failed]
    library.ingest_log.clear_failures([outcome.uri for outcome in good], [addition.name])
    record_failures(library, addition.name, [outcome for outcome in outcomes if outcome.problem])
    counts = {outcome.video_id: outcome.rows for outcome in good}
    if not counts:
        return list(outcomes)
    rejected = library.additions.complete(addition.name, addition.model, counts, addition.settings)
    changed = "its rows were not as many as were written, or the video is gone; run the same command again"
    lost = [
        replace(each, rows=0, problem=changed, error_class="Rejected", arithmetic="")
        for each in good
        if each.video_id in rejected
    ]
    record_failures(library, addition.name, lost)
    return [each for each in outcomes if each.video_id not in rejected] + lost


def record_failures(library: Library, stage: str, outcomes: Sequence[VideoOutcome]) -> None:
    """Record outcomes of a stage that went wrong in whole or in part."""
    now = datetime.now(UTC)
    rows = [
        FailureRow(each.uri, stage, each.error_class or "Incomplete", each.problem or "", 1, now) for each in outcomes
    ]
    library.ingest_log.add_failures(rows)


def _run_row(addition: Addition, report: AddReport, started_at: datetime) -> RunRow:
    numbers: dict[str, Any] = {
        "stage": addition.name,
        "model": addition.model,
        "settings": dict(addition.settings),
        "videos": {"added": report.added, "failed": report.failed},
        "rows": report.rows,
        "seconds": report.seconds,
        "usage": asdict(report.usage),
    }
    if report.arithmetic:
        numbers["arithmetic"] = report.arithmetic
    ended = started_at + timedelta(seconds=report.seconds)
    return RunRow(uuid.uuid4().hex, f"add {addition.name}", "done", started_at, ended, json.loads(json.dumps(numbers)))
