"""Run a stage on a library: here or on Ray, with a progress bar and a report."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

import typer

from jobs.cli.add.options import Sharing
from jobs.cli.add.report import show

if TYPE_CHECKING:
    from index.library import Library
    from jobs.annotate.stage import AddReport, Stage


def local_name(model: str) -> str:
    """Resolve a folder to its whole path, so that it is one model from any working directory; keep a hub id."""
    from pathlib import Path

    folder = Path(model).expanduser()
    return str(folder.resolve()) if folder.is_dir() else model


def run(
    uri: str,
    stage: Stage,
    videos: list[str] | None,
    sharing: Sharing,
    as_json: bool,
    again: Callable[[Library], list[str]] | None = None,
    frames_needed: bool = True,
) -> None:
    """Add a stage, show what was done, and exit with 3 if it could not be done for some videos.

    `again` lists the videos that have it and get it again. Unless `frames_needed`, videos that were imported as text
    get it too.
    """
    from index.library import Library
    from jobs.errors import OK, SOME_FAILED

    library = Library.open(uri)
    named = [row.video_id for row in library.videos_named(videos)] if videos else None
    ids = with_frames(library, videos) if frames_needed else named
    report = add_rows(library, stage, ids, sharing, again(library) if again else ())
    show(report, as_json)
    raise typer.Exit(SOME_FAILED if report.failed else OK)


def add_rows(
    library: Library, stage: Stage, ids: list[str] | None, sharing: Sharing, again: Collection[str]
) -> AddReport:
    """Add a stage to videos with a progress bar, here or on Ray."""
    from contextlib import ExitStack

    from jobs.annotate.run import add
    from jobs.console.add_progress import add_progress_bar
    from jobs.console.output import error_console

    with ExitStack() as stack:
        executor = None
        if sharing.ray or sharing.address:
            from jobs.annotate.ray_executor import ray_executor

            executor = stack.enter_context(ray_executor(sharing.workers, sharing.address))
        watch = stack.enter_context(add_progress_bar(error_console(), stage.name))
        return add(library, stage, ids, watch, executor, again)


def with_frames(library: Library, names: list[str] | None) -> list[str] | None:
    """Ids of the named videos that have frames; of all such videos, or None if all have frames."""
    from jobs.errors import UsageError

    rows = library.videos_named(names) if names else library.videos()
    without = [row for row in rows if not row.frames]
    if names and without:
        raise UsageError(f"got --video {without[0].title}, which was imported as text and has no frames; leave it out")
    if without:
        several = "videos that were imported as text are left out: they have no frames"
        one = "video that was imported as text is left out: it has no frames"
        print(f"{len(without):,} {one if len(without) == 1 else several}", file=sys.stderr)
    return [row.video_id for row in rows if row.frames] if names or without else None
