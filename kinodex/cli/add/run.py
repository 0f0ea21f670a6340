"""A stage that is added by `kinodex add`, or its forecast."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from kinodex.cli import model_options, options
from kinodex.cli.add.report import report_json, show_report
from kinodex.cli.options import JsonOption, VideoOption, WhereOption, rare
from kinodex.jobs.errors import OK, SOME_FAILED, UsageError
from kinodex.output import error_console, print_json, say, tell

if TYPE_CHECKING:
    from kinodex.index.library import Library
    from kinodex.jobs.add.run import AddReport
    from kinodex.jobs.add.stage import Stage, Written


@dataclass(frozen=True)
class Adding:
    """The videos that get an addition, the use of Ray, and the form of the report, for `with_groups`."""

    video: VideoOption = None
    where: WhereOption = None
    ray: Annotated[bool, typer.Option("--ray", help="Share the work among Ray actors.")] = False
    ray_address: Annotated[
        str | None, rare("--ray-address", help="The Ray cluster. Default: RAY_ADDRESS, else one started here.")
    ] = None
    workers: Annotated[
        int | None, typer.Option(min=1, help="Ray actors, each with the model. Default: one a GPU, else one a core.")
    ] = None
    json: JsonOption = False


HERE = Adding()


def run(uri: str, name: str, stage: Stage, adding: Adding, dry_run: bool = False) -> None:
    """Add a stage, show what was done, and exit with 3 if it could not be done for some videos."""
    from kinodex.jobs.add.stage import Written

    is_served = bool(getattr(stage, "base_url", None))
    if isinstance(stage, Written):
        _check(stage, adding, dry_run)
    if is_served:
        from kinodex.jobs.models import ModelChoice

        model_options.announce(ModelChoice(getattr(stage, "served", ""), getattr(stage, "base_url", None)))
    library = options.open_library(uri)
    ids = _chosen(library, adding, stage.frames_needed)
    if dry_run:
        from kinodex.jobs.costs import table

        say(table([stage.forecast(library, ids)], stage.unit))
        return
    report = add_rows(library, stage, ids, adding)
    if adding.json:
        print_json(report_json(report))
    else:
        show_report(report, retries="retry_failed" in type(stage).model_fields)
    raise typer.Exit(SOME_FAILED if report.failed or report.incomplete else OK)


def _check(stage: Written, adding: Adding, dry_run: bool) -> None:
    """Raise UsageError for options that do not go together."""
    from kinodex.jobs.models import ModelChoice

    on_ray = adding.ray or adding.ray_address is not None
    if stage.base_url is None and dry_run:
        raise UsageError("got --dry-run for a local model, which costs nothing; give --base-url")
    if stage.batch_api and on_ray:
        raise UsageError(
            "got --batch-api with --ray; batches are sent and waited for by this process, so leave one out"
        )
    if stage.stop_at_cost is not None and on_ray:
        raise UsageError("got --stop-at-cost with --ray; leave one out, and see the bill with --dry-run")
    prices = stage.input_price, stage.output_price
    model_options.check_cost(ModelChoice(stage.served, stage.base_url, None, *prices), None, stage.stop_at_cost)


def add_rows(library: Library, stage: Stage, ids: list[str] | None, adding: Adding) -> AddReport:
    """Add a stage to some videos of a library, or to all, and show how it goes on."""
    from kinodex.cli.progress_bars import add_progress_bar
    from kinodex.jobs.add.run import add
    from kinodex.jobs.add.stage import Written

    with ExitStack() as stack:
        watch = stack.enter_context(add_progress_bar(error_console(), stage.name))
        if isinstance(stage, Written) and stage.batch_api:
            from kinodex.jobs.add.batch_api import add_by_batches

            return add_by_batches(library, stage, ids, watch, tell)
        executor = None
        if adding.ray or adding.ray_address:
            from kinodex.jobs.add.ray import ray_executor

            executor = stack.enter_context(ray_executor(adding.workers, adding.ray_address))
        return add(library, stage, ids, watch, executor)


def _chosen(library: Library, adding: Adding, frames_needed: bool) -> list[str] | None:
    """Return the ids of the videos that are chosen, or of those with frames if these are needed; None for all."""
    if frames_needed:
        return with_frames(library, adding)
    rows = library.select(adding.video or (), adding.where)
    return None if rows is None else [row.video_id for row in rows]


def with_frames(library: Library, adding: Adding) -> list[str] | None:
    """Return the ids of those that are chosen and have frames, None for all."""
    rows = library.where(adding.where).chosen(adding.video or ())
    without = [row for row in rows if not row.frames]
    if adding.video and without:
        raise UsageError(f"got --video {without[0].title}, which was imported as text and has no frames; leave it out")
    if without:
        several = "videos that were imported as text are left out: they have no frames"
        one = "video that was imported as text is left out: it has no frames"
        tell(f"{len(without):,} {one if len(without) == 1 else several}")
    return [row.video_id for row in rows if row.frames] if without or adding.video or adding.where is not None else None
