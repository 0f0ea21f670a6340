"""An optional stage over the videos of a library that lack it: `kinodex add`.

A video's rows are made from what the library holds (speech: from its source), written for several videos at once,
and shown to readers last, by one row in `additions`. What a run leaves that is killed in between is deleted by the
next one, under the lease of the stage. A video whose rows cannot be made is a failure row, and is tried again by
the next run.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Collection, Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from agent.errors import AllRejected, ModelRejected
from index.library import Library
from index.rows import FailureRow, RunRow, VideoRow
from jobs.annotate.stage import Added, AddReport, Made, RowsOf, SideBySide, Stage
from pipeline.errors import ModelUnusable, PipelineError

VIDEOS_A_COMMIT = 8
SECONDS_A_COMMIT = 30.0
"""What is made is written after so many videos or so long: a slow model loses no more by being killed."""

Watch = Callable[[int, int, Added], None]
"""Told how many of how many videos are done, and what became of the last one."""
Held = tuple[str, str]
"""Name and token of the lease under which rows are written."""
Executor = Callable[[Library, Stage, Sequence[VideoRow], Held], Generator[list[Added], None, None]]
"""Makes and writes the rows of videos, a few at a time, in any order."""


def add(
    library: Library,
    stage: Stage,
    video_ids: Sequence[str] | None = None,
    watch: Watch = lambda done, total, last: None,
    crew: Executor | None = None,
    again: Collection[str] = (),
) -> AddReport:
    """Add a stage to every complete video, or to these, where its model has not added it yet.

    `again` are ids of those that have it and get it anew: what the stage writes has to take the place of what is there.
    Raises LibraryBusy if another run adds this stage now, ModelUnusable or a KinodexError if nothing can be added.
    """
    began, started_at = time.monotonic(), datetime.now(UTC)
    outcomes: list[Added] = []
    with library.lease(f"add {stage.name}", f"kinodex add {stage.name}") as lease:
        stage.prepare(library)
        library.discard_leftovers(stage.name, stage.model)
        wanted = {row.video_id for row in library.pending(stage.name, stage.model)}.union(again)
        chosen = wanted if video_ids is None else wanted.intersection(video_ids)
        videos = [row for row in library.videos() if row.video_id in chosen]
        with closing((crew or add_here)(library, stage, videos, (lease.name, lease.token))) as made:
            for some in made:
                lease.check()
                for outcome in settle(library, stage, some):
                    outcomes.append(outcome)
                    watch(len(outcomes), len(videos), outcome)
        report = AddReport(stage.name, stage.model, outcomes, time.monotonic() - began)
        if outcomes:
            library.add_run(_run_row(stage, report, started_at))
            library.refresh()
    return report


def add_here(
    library: Library, stage: Stage, videos: Iterable[VideoRow], held: Held
) -> Generator[list[Added], None, None]:
    """Make and write the rows of videos in this process; gives what became of them as they are written.

    Raises LeaseLost before it writes what another run is writing by now.
    """
    waiting: list[tuple[Added, Made | None]] = []
    written = time.monotonic()
    with closing(_each(library, stage, videos)) as each:
        for made in each:
            waiting.append(made)
            if len(waiting) >= VIDEOS_A_COMMIT or time.monotonic() - written >= SECONDS_A_COMMIT:
                yield _write(library, stage, waiting, held)
                waiting, written = [], time.monotonic()
    if waiting:
        yield _write(library, stage, waiting, held)


def _each(
    library: Library, stage: Stage, videos: Iterable[VideoRow]
) -> Generator[tuple[Added, Made | None], None, None]:
    work = partial(add_to_video, library)
    if isinstance(stage, SideBySide):
        return stage.each(work, videos)
    return (work(stage.rows_of, video) for video in videos)


def add_to_video(library: Library, rows_of: RowsOf, video: VideoRow) -> tuple[Added, Made | None]:
    """What a stage makes of one video, not written yet; None where it can make nothing of it.

    Raises what would meet every other video too: `ModelUnusable`, `AllRejected`, an endpoint that does not answer.
    """
    try:
        made = rows_of(library, video)
    except (ModelUnusable, AllRejected):
        raise
    except (PipelineError, ModelRejected) as error:
        failed = Added(video.video_id, video.uri, video.title, 0, str(error), type(error).__name__)
        return failed, None
    return Added(video.video_id, video.uri, video.title, made.count, made.problem, None, made.usage), made


def settle(library: Library, stage: Stage, outcomes: Sequence[Added]) -> list[Added]:
    """Record what became of videos whose rows are written, and last of all let readers see the good ones."""
    good = [outcome for outcome in outcomes if not outcome.is_failed]
    now = datetime.now(UTC)
    library.clear_failures([outcome.uri for outcome in good], [stage.name])
    library.add_failures([_failure(outcome, stage, now) for outcome in outcomes if outcome.problem])
    counts = {outcome.video_id: outcome.rows for outcome in good}
    rejected = library.complete_addition(stage.name, stage.model, counts, stage.settings) if counts else ()
    if not rejected:
        return list(outcomes)
    changed = "its rows were not as many as were written, or the video is gone; run the same command again"
    lost = [
        Added(each.video_id, each.uri, each.title, 0, changed, "Rejected") for each in good if each.video_id in rejected
    ]
    library.add_failures([_failure(outcome, stage, now) for outcome in lost])
    return [each for each in outcomes if each.video_id not in rejected] + lost


def _write(library: Library, stage: Stage, waiting: Sequence[tuple[Added, Made | None]], held: Held) -> list[Added]:
    library.check_lease(*held)
    rows = {outcome.video_id: made.rows for outcome, made in waiting if made is not None and made.count}
    if rows:
        stage.write(library, rows)
    return [outcome for outcome, _ in waiting]


def _failure(outcome: Added, stage: Stage, when: datetime) -> FailureRow:
    return FailureRow(outcome.uri, stage.name, outcome.error_class or "Incomplete", outcome.problem or "", 1, when)


def _run_row(stage: Stage, report: AddReport, started_at: datetime) -> RunRow:
    told: dict[str, Any] = {
        "stage": stage.name,
        "model": stage.model,
        "settings": dict(stage.settings),
        "videos": {"added": report.added, "failed": report.failed},
        "rows": report.rows,
        "seconds": report.seconds,
        "usage": asdict(report.usage),
    }
    ended = started_at + timedelta(seconds=report.seconds)
    return RunRow(uuid.uuid4().hex, f"add {stage.name}", "done", started_at, ended, json.loads(json.dumps(told)))
