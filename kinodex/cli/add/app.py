"""`kinodex add` and `extract`: results of more models for the videos of a library, by the settings of each stage."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, ClassVar

import typer
from typer.main import get_command

from kinodex.cli import options
from kinodex.cli.from_models import stage_options, with_groups
from kinodex.cli.meant import Group
from kinodex.cli.text_towers import text_tower
from kinodex.index.durations import counted
from kinodex.index.kinds import KINDS
from kinodex.index.terminal_text import visible
from kinodex.jobs.add.stage import read_settings
from kinodex.jobs.add.stages import Extracts, find_stage, stage_names
from kinodex.jobs.errors import OK, SOME_FAILED, UsageError
from kinodex.output import console, error_console, print_json, say, tell

if TYPE_CHECKING:
    from typer._click import Command, Context

    from kinodex.index.library import Library
    from kinodex.jobs.add.run import AddReport
    from kinodex.jobs.add.stage import Stage, Written

# The commands: one for each stage, with an option for each setting that has a `Flag`.


def stage_command(name: str, kind: type[Stage]) -> Callable[..., None]:
    """Make the command that adds a stage: its docstring is the help, its settings are the options."""

    def command(library: str, adding: options.Adding, **given: Any) -> None:
        settings = {each: value for each, value in given.items() if value is not None}
        dry_run = settings.pop("dry_run", False)
        run(library, name, read_settings(kind, name, settings), adding, dry_run)

    own = inspect.signature(command, eval_str=True).parameters
    grouped = [
        own["library"].replace(annotation=options.LibraryArgument),
        *stage_options(kind),
        *([DRY_RUN] if kind.is_forecast else []),
        own["adding"].replace(annotation=options.Adding, default=options.HERE, kind=inspect.Parameter.KEYWORD_ONLY),
    ]
    vars(command)["__signature__"] = inspect.Signature(
        [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in grouped]
    )
    command.__doc__ = kind.__doc__
    return with_groups(command)


DRY_RUN = inspect.Parameter("dry_run", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=options.DryRunOption)


class Stages(Group):
    """The group of `kinodex add`, whose commands are made when they are first used."""

    others: ClassVar[dict[str, Callable[..., None]]] = {"text-tower": text_tower}

    def list_commands(self, ctx: Context) -> list[str]:
        return [*stage_names(), *self.others]

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:
        """The command of a stage; one that cannot be loaded has a command that says why."""
        if cmd_name not in self.commands and cmd_name in self.list_commands(ctx):
            self.add_command(_made(cmd_name, self.others.get(cmd_name)), cmd_name)
        return super().get_command(ctx, cmd_name)


ANYTHING = {"allow_extra_args": True, "ignore_unknown_options": True}


def _made(name: str, function: Callable[..., None] | None) -> Command:
    """The command of this function, or of the stage of this name."""
    holder, takes = typer.Typer(add_completion=False), dict[str, bool]()
    try:
        function = function or stage_command(name, find_stage(name))
    except UsageError as error:
        function, takes = _refusing(error), ANYTHING
    holder.command(name, context_settings=takes)(function)
    return get_command(holder)


def _refusing(error: UsageError) -> Callable[..., None]:
    def refuse() -> None:
        raise error

    refuse.__doc__ = f"{str(error)[:1].upper()}{str(error)[1:]}."
    return refuse


app = typer.Typer(
    cls=Stages,
    help="Add captions, detections, speech, text on screen, another space and so on to the videos of a library that "
    "lack them. Run again, it does only what is new; it may run beside an ingest.",
    no_args_is_help=True,
)


extract = stage_command("extracts", Extracts)
"""A stage with a verb of its own."""


# A stage that is added, or what it would cost.


def run(uri: str, name: str, stage: Stage, adding: options.Adding, dry_run: bool = False) -> None:
    """Add a stage, show what was done, and exit with 3 if it could not be done for some videos."""
    from kinodex.jobs.add.stage import Written

    is_served = bool(getattr(stage, "base_url", None))
    if isinstance(stage, Written):
        _check(stage, adding, dry_run)
    if is_served:
        from kinodex.jobs.models import ModelChoice

        options.announce(ModelChoice(getattr(stage, "served", ""), getattr(stage, "base_url", None)))
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


def _check(stage: Written, adding: options.Adding, dry_run: bool) -> None:
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
    options.check_cost(ModelChoice(stage.served, stage.base_url, None, *prices), None, stage.stop_at_cost)


def add_rows(library: Library, stage: Stage, ids: list[str] | None, adding: options.Adding) -> AddReport:
    """Add a stage to some videos of a library, or to all, and show how it goes on."""
    from kinodex.cli.show import add_progress_bar
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


def _chosen(library: Library, adding: options.Adding, frames_needed: bool) -> list[str] | None:
    """The ids of the videos that are chosen, or of those with frames if these are needed; None for all."""
    if frames_needed:
        return with_frames(library, adding)
    rows = library.select(adding.video or (), adding.where)
    return None if rows is None else [row.video_id for row in rows]


def with_frames(library: Library, adding: options.Adding) -> list[str] | None:
    """The ids of those that are chosen and have frames, None for all."""
    rows = library.where(adding.where).chosen(adding.video or ())
    without = [row for row in rows if not row.frames]
    if adding.video and without:
        raise UsageError(f"got --video {without[0].title}, which was imported as text and has no frames; leave it out")
    if without:
        several = "videos that were imported as text are left out: they have no frames"
        one = "video that was imported as text is left out: it has no frames"
        tell(f"{len(without):,} {one if len(without) == 1 else several}")
    return [row.video_id for row in rows if row.frames] if without or adding.video or adding.where is not None else None


# Show what a stage did: as text or as JSON.


def report_json(report: AddReport) -> dict[str, Any]:
    counts = {"added": report.added, "failed": report.failed, "incomplete": report.incomplete, "rows": report.rows}
    return {**asdict(report), **counts, "usage": asdict(report.usage), "arithmetic": report.arithmetic}


UNITS = {"shots": "segments"}
"""Rows of a stage, where they are named otherwise than the stage."""


def show_report(report: AddReport, *, retries: bool = False) -> None:
    """Print what was added, and what failed; `retries`: the same command takes --retry-failed."""
    from rich.markup import escape

    out = console()
    for outcome in report.outcomes:
        if outcome.problem:
            word = "failed" if outcome.is_failed else "in part"
            title, problem = escape(visible(outcome.title)), escape(visible(outcome.problem))
            out.print(f"[red]{word}[/] {title}: {problem}", soft_wrap=True)
    if not report.outcomes:
        out.print(f"nothing to do: every video has {report.stage} by {escape(report.model)} already")
        return
    spent = report.usage
    tokens = f", {spent.input_tokens} tokens in, {spent.output_tokens} out" if spent.input_tokens else ""
    tokens += f", an estimated {spent.estimated_tokens} tokens" if spent.estimated_tokens else ""
    cost = f", cost {spent.cost:.4f}" if spent.cost else ""
    videos = f"{report.added} video{'s' * (report.added != 1)}"
    kind = KINDS.get(report.stage)
    rows = kind.count(report.rows) if kind else f"{report.rows:,} {UNITS.get(report.stage, report.stage)}"
    out.print(f"added {rows} to {videos} in {report.seconds:.1f} s{tokens}{cost}")
    if report.incomplete and retries:
        lacking = counted(report.incomplete, "video")
        out.print(f"{lacking} in part: run the same command with --retry-failed to ask about the rest again")
