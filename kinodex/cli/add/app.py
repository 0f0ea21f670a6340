"""The commands of `kinodex add`: one for each stage, with an option for each setting that has a `Flag`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import typer
from typer.main import get_command

from kinodex.cli import model_options, options
from kinodex.cli.add.run import HERE, Adding, run
from kinodex.cli.from_models import stage_options, with_groups
from kinodex.cli.meant import Group
from kinodex.cli.text_towers import text_tower
from kinodex.jobs.add.settings import read_settings
from kinodex.jobs.add.stages import Extracts, find_stage, stage_names
from kinodex.jobs.errors import UsageError

if TYPE_CHECKING:
    from typer._click import Command, Context

    from kinodex.jobs.add.stage import Stage


def stage_command(name: str, kind: type[Stage]) -> Callable[..., None]:
    """Make the command that adds a stage: its docstring is the help, its settings are the options."""

    def command(library: str, adding: Adding, **given: Any) -> None:
        settings = {each: value for each, value in given.items() if value is not None}
        dry_run = settings.pop("dry_run", False)
        run(library, name, read_settings(kind, name, settings), adding, dry_run)

    own = inspect.signature(command, eval_str=True).parameters
    grouped = [
        own["library"].replace(annotation=options.LibraryArgument),
        *stage_options(kind),
        *([DRY_RUN] if kind.is_forecast else []),
        own["adding"].replace(annotation=Adding, default=HERE, kind=inspect.Parameter.KEYWORD_ONLY),
    ]
    vars(command)["__signature__"] = inspect.Signature(
        [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in grouped]
    )
    command.__doc__ = kind.__doc__
    return with_groups(command)


DRY_RUN = inspect.Parameter(
    "dry_run", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=model_options.DryRunOption
)


class Stages(Group):
    """The group of `kinodex add`, whose commands are made when they are first used."""

    others: ClassVar[dict[str, Callable[..., None]]] = {"text-tower": text_tower}

    def list_commands(self, ctx: Context) -> list[str]:
        return [*stage_names(), *self.others]

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:
        """Return the command of a stage; one that cannot be loaded has a command that says why."""
        if cmd_name not in self.commands and cmd_name in self.list_commands(ctx):
            self.add_command(_made(cmd_name, self.others.get(cmd_name)), cmd_name)
        return super().get_command(ctx, cmd_name)


ANYTHING = {"allow_extra_args": True, "ignore_unknown_options": True}


def _made(name: str, function: Callable[..., None] | None) -> Command:
    """Return the command of this function, or of the stage of this name."""
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
