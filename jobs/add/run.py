"""Add what models make of videos to those of a library that lack it: `kinodex add`.

An addition's rows are made video by video from what the library holds (speech: from its source), written for several
videos at once, and shown to readers last, by one row in `additions`. The next run deletes what a killed one left, under
the lease of the addition. A video whose rows cannot be made becomes a failure row; the next run tries it again.
"""

from __future__ import annotations

import json
import shlex
import time
import uuid
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

from kinodex.agent.errors import ENDS_ALL, GONE_AFTER, ModelRejected, ModelUnreachable, NoCompletion, NoUsableReply
from kinodex.agent.protocol import Usage
from kinodex.index.errors import DamagedRows, KinodexError, UnknownVideo
from kinodex.index.library import Library
from kinodex.index.rows import FailureRow, RunRow, VideoRow
from kinodex.index.spaces.towers import joined_arithmetic
from kinodex.index.store.indexes import refresh
from kinodex.jobs.errors import CostReached, UsageError
from kinodex.pipeline.errors import ModelUnusable, PipelineError

NO_COST = Usage()
CONTENT = "content"
"""Name of the digest of a model's files among the settings that are kept."""
T = TypeVar("T")


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


RowsOf = Callable[[Library, VideoRow], AddedRows]


class Addition(Protocol):
    """Settings of an addition and its work; frozen, and small enough to be sent. Models are loaded when needed."""

    @property
    def name(self) -> str:
        """One of `kinodex.index.store.schema.STAGES`."""

    @property
    def model(self) -> str:
        """The model's name in rows and additions: the same name, the same rows."""

    @property
    def device(self) -> str:
        """The device of the model: auto, cpu, cuda, ..."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings that the rows depend on, as JSON can hold them; stored with every addition."""

    def prepare(self, library: Library) -> None:
        """Load the models and prepare the library's tables; raises errors that would end the whole run."""

    def rows_of(self, library: Library, video: VideoRow) -> AddedRows:
        """Make the rows of one video; raises a PipelineError or `ModelRejected` if that fails."""

    def write(self, library: Library, rows: Mapping[str, Any]) -> None:
        """Append the rows of several videos."""


@runtime_checkable
class ConcurrentAddition(Protocol):
    """Addition that works on several videos together, because it waits for an endpoint more than it computes."""

    def each(self, work: Callable[[RowsOf, VideoRow], T], videos: Iterable[VideoRow]) -> Generator[T, None, None]:
        """Apply `work` to each video, with the function that makes its rows; yields the results in order."""

    def share(self, processes: int) -> Addition:
        """Make the addition for each of several processes that share its work."""


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
"""Rows are written after so many videos or so long: a kill loses no more of a slow model's work."""

Watch = Callable[[int, int, VideoOutcome], None]
"""Gets the number of videos that are done, of all videos, and the outcome of the last one."""
LeaseKey = tuple[str, str]
"""Name and token of the lease under which rows are written."""
Executor = Callable[[Library, Addition, Sequence[VideoRow], LeaseKey], Generator[list[VideoOutcome], None, None]]
"""Makes and writes the rows of videos, a few at a time, in any order."""
Made = tuple[VideoOutcome, AddedRows | None]
UNHEARD = {ModelUnreachable.__name__, NoCompletion.__name__}
SPENT = CostReached.__name__


def add(
    library: Library,
    addition: Addition,
    video_ids: Sequence[str] | None = None,
    watch: Watch = lambda done, total, last: None,
    executor: Executor | None = None,
    again: Collection[str] = (),
) -> AddReport:
    """Add rows to every complete video, or to these, where the addition's model has not added them yet, or `again`.

    Raises LibraryBusy if another run adds the same now, ModelUnusable or a KinodexError if nothing can be added.
    """
    began, started_at = time.monotonic(), datetime.now(UTC)
    outcomes: list[VideoOutcome] = []
    with library.lease(f"add {addition.name}", f"kinodex add {addition.name}") as lease:
        addition.prepare(library)
        library.additions.discard_leftovers(addition.name, addition.model)
        videos = pending_videos(library, addition.model, video_ids, again, addition.name)
        with closing((executor or add_in_process)(library, addition, videos, (lease.name, lease.token))) as batches:
            for batch in batches:
                lease.check()
                for outcome in commit_outcomes(library, addition, batch):
                    outcomes.append(outcome)
                    watch(len(outcomes), len(videos), outcome)
        report = AddReport(addition.name, addition.model, outcomes, time.monotonic() - began)
        if outcomes:
            library.ingest_log.add_run(_run_row(addition, report, started_at))
            refresh(library.tables)
    return report


def pending_videos(
    library: Library, model: str, video_ids: Collection[str] | None, again: Collection[str], stage: str = "captions"
) -> list[VideoRow]:
    """List the videos that a run would work on: those that lack the stage by the model, and those `again`."""
    lacking = {row.video_id for row in library.additions.pending(stage, model)}.union(again)
    chosen = lacking if video_ids is None else lacking.intersection(video_ids)
    return [row for row in library.videos() if row.video_id in chosen]


def add_in_process(
    library: Library, addition: Addition, videos: Iterable[VideoRow], lease: LeaseKey
) -> Generator[list[VideoOutcome], None, None]:
    """Make and write the rows of videos in this process; yields their outcomes as they are written.

    An error that ends the run, such as a lost lease, is raised once all that was made before it is written.
    """
    waiting: list[Made] = []
    written = time.monotonic()
    try:
        with closing(_heard(library, addition, videos)) as each:
            for made in each:
                waiting.append(made)
                if len(waiting) >= VIDEOS_A_COMMIT or time.monotonic() - written >= SECONDS_A_COMMIT:
                    batch, waiting = waiting, []
                    yield _write(library, addition, batch, lease)
                    written = time.monotonic()
    except Exception:
        if waiting:
            yield _write(library, addition, waiting, lease)
        raise
    if waiting:
        yield _write(library, addition, waiting, lease)


def _heard(library: Library, addition: Addition, videos: Iterable[VideoRow]) -> Generator[Made, None, None]:
    """Make the rows of each video until an endpoint is gone, or has cost enough; what is in flight then is awaited.

    It is gone if several videos in a row, or all of them, get no reply: that is no failure of theirs.
    """
    unheard: list[Made] = []
    gone, spent, anything_heard = "", "", False
    work, until_gone = partial(add_to_video, library), takewhile(lambda _: not (gone or spent), videos)
    made_each: Generator[Made, None, None]
    if isinstance(addition, ConcurrentAddition):
        made_each = addition.each(work, until_gone)
    else:
        made_each = (work(addition.rows_of, video) for video in until_gone)
    with closing(made_each) as each:
        for made in each:
            if made[0].error_class == SPENT:
                spent = made[0].problem or SPENT
            elif made[0].error_class in UNHEARD:
                unheard.append(made)
                if len(unheard) >= GONE_AFTER:
                    gone = gone or unheard[0][0].problem or "no reply"
            else:
                if not gone:
                    yield from unheard
                unheard, anything_heard = [], True
                yield made
    if unheard and not anything_heard:
        gone = gone or unheard[0][0].problem or "no reply"
    if gone:
        raise ModelUnreachable(gone)
    yield from unheard
    if spent:
        raise CostReached(spent)


def add_to_video(library: Library, rows_of: RowsOf, video: VideoRow) -> Made:
    """Make the rows of one video, not written yet; None if that fails. Raises what every other video would meet too."""
    try:
        made = rows_of(library, video)
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


def _write(library: Library, addition: Addition, waiting: Sequence[Made], lease: LeaseKey) -> list[VideoOutcome]:
    library.guard(*lease)
    rows = {outcome.video_id: made.rows for outcome, made in waiting if made is not None and made.count}
    if rows:
        addition.write(library, rows)
    return [outcome for outcome, _ in waiting]


def commit_outcomes(library: Library, addition: Addition, outcomes: Sequence[VideoOutcome]) -> list[VideoOutcome]:
    """Record the outcomes of videos whose rows are written, and last of all show the good ones to readers."""
    good = [outcome for outcome in outcomes if not outcome.is_failed]
    library.ingest_log.clear_failures([outcome.uri for outcome in good], [addition.name])
    record_failures(library, addition.name, [outcome for outcome in outcomes if outcome.problem])
    counts = {outcome.video_id: outcome.rows for outcome in good}
    if not counts:
        return list(outcomes)
    rejected = library.additions.complete(addition.name, addition.model, counts, kept_settings(addition))
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


# The settings of what a model added before.


def check_settings(library: Library, addition: Addition, *names: str) -> None:
    """Raise `UsageError` unless the model added its rows with these settings: rows are known by their model alone."""
    stored = library.additions.settings(addition.name, addition.model)
    remedy = f"kinodex remove added {shlex.quote(library.uri)} {addition.name} {shlex.quote(addition.model)}"
    if CONTENT in stored and stored[CONTENT] != kept_settings(addition).get(CONTENT, stored[CONTENT]):
        raise UsageError(
            f"the files of {addition.model} are others than those that made {addition.name} in {library.uri}; give the "
            f"model that made them, or first take out what is there: {remedy}"
        )
    changed = [name for name in names if name in stored and stored[name] != addition.settings.get(name)]
    if changed:
        raise UsageError(
            f"got {_options(addition.settings, changed)}, but {library.uri} holds {addition.name} by {addition.model} "
            f"made with {_options(stored, changed)}; give that again, or first take out what is there: {remedy}"
        )


def kept_settings(addition: Addition) -> Mapping[str, Any]:
    """Settings that are kept with the rows: the addition's, and a digest of its model's files where they lie here."""
    from kinodex.jobs.models import content_digest

    settings = addition.settings
    place = Path(settings.get("detector", addition.model)).expanduser()
    is_here = addition.name != "mapped" and not settings.get("base_url") and place.is_dir()
    return {**settings, CONTENT: content_digest(place)} if is_here else settings


def _options(settings: Mapping[str, Any], names: Sequence[str]) -> str:
    """Settings as options of the command line."""
    return " ".join(_option(f"--{name.replace('_', '-')}", settings[name]) for name in names)


def _option(option: str, value: Any) -> str:
    if isinstance(value, bool):
        return option if value else option.replace("--", "--no-", 1)
    return f"no {option}" if value is None else f"{option} {value}"


def hub_for(model: str) -> AbstractContextManager[bool]:
    """Context to load a model in: for a model of a hub, requests that fail fall back to its cache quickly."""
    from kinodex.index.spaces.space import quick_hub

    return nullcontext(False) if Path(model).expanduser().is_dir() else quick_hub()
