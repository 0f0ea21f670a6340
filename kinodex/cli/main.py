"""The command line: `kinodex`. Commands import what they need when they run, so that `--help` is quick."""

from __future__ import annotations

import sys
from errno import EDQUOT, ENOSPC, EROFS
from importlib import import_module
from typing import TYPE_CHECKING, Annotated

import typer
from typer.core import TyperGroup
from typer.main import get_command

from kinodex.cli.options import spelt_as_now, spread_ray

if TYPE_CHECKING:
    from typer._click import Command, Context

COMMANDS = {
    "sample": "kinodex.cli.sketch:sample",
    "ingest": "kinodex.cli.ingest:ingest",
    "info": "kinodex.cli.library:info",
    "report": "kinodex.cli.library:report",
    "view": "kinodex.cli.serve:view",
    "serve": "kinodex.cli.serve:serve",
    "search": "kinodex.cli.search:search",
    "ground": "kinodex.cli.search:ground",
    "duplicates": "kinodex.cli.search:duplicates",
    "frames": "kinodex.cli.library:frames",
    "maintain": "kinodex.cli.library:maintain",
    "doctor": "kinodex.cli.doctor:doctor",
    "ask": "kinodex.cli.ask:ask",
    "agents": "kinodex.cli.ask:agents",
    "mcp": "kinodex.cli.serve:mcp",
    "demo": "kinodex.cli.sketch:demo",
    "rollouts": "kinodex.cli.train:rollouts",
    "eval": "kinodex.cli.eval:app",
    "add": "kinodex.cli.add:app",
    "name": "kinodex.cli.add:name",
    "import": "kinodex.cli.library:import_app",
    "remove": "kinodex.cli.library:remove_app",
    "export": "kinodex.cli.export:app",
    "bench": "kinodex.cli.bench:app",
    "train": "kinodex.cli.train:app",
}
"""Where each command or group of commands is, in the order of `--help`: the module, and its name there."""


class Commands(TyperGroup):
    """All commands; the module of one is imported when it is first used, so that no command pays for the others."""

    def list_commands(self, ctx: Context) -> list[str]:
        """The names of all commands, in the order of `--help`."""
        return list(COMMANDS)

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:
        """The command or group of a name; None if there is none: then all are imported, for the names that are near."""
        for name in [cmd_name] if cmd_name in COMMANDS else COMMANDS:
            if name not in self.commands:
                self.add_command(_load(name), name)
        return super().get_command(ctx, cmd_name)


def _load(name: str) -> Command:
    """Import the command or group of a name."""
    module, _, attribute = COMMANDS[name].partition(":")
    found = getattr(import_module(module), attribute)
    holder = typer.Typer(add_completion=False)
    holder.callback()(lambda: None)
    if isinstance(found, typer.Typer):
        holder.add_typer(found, name=name)
    else:
        holder.command(name)(found)
    group = get_command(holder)
    assert isinstance(group, TyperGroup)
    return group.commands[name]


def _show_version(requested: bool) -> None:
    if requested:
        from importlib.metadata import version

        print(f"kinodex {version('kinodex')}")
        raise typer.Exit


UNWRITABLE = (ENOSPC, EDQUOT, EROFS)
"""Errors of a write that are no fault of the program: a full disk, or one that is read-only."""

app = typer.Typer(cls=Commands, no_args_is_help=True, pretty_exceptions_enable=False)


@app.callback()
def kinodex(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Index a video library once, then answer questions about it for the price of a few frames."""


def main() -> None:
    """Run the command line. An error of the tree in jobs/errors.py becomes one line on stderr and an exit code."""
    from kinodex.index.errors import KinodexError
    from kinodex.jobs.child_processes import isolated_children
    from kinodex.jobs.errors import BAD_INPUT, EXTRAS, INTERRUPTED
    from kinodex.jobs.output import visible_lines, write_any_text
    from kinodex.pipeline.errors import PipelineError

    write_any_text(sys.stdout, sys.stderr)
    try:
        with isolated_children():
            app(_spelt_out(sys.argv[1:]))
    except ModuleNotFoundError as error:
        if error.name not in EXTRAS:
            raise
        remedy = f"pip install 'kinodex[{EXTRAS[error.name]}]'"
        print(f"error: this needs the package {error.name}, which is not installed; {remedy}", file=sys.stderr)
        raise SystemExit(BAD_INPUT) from None
    except (KinodexError, PipelineError) as error:
        from kinodex.jobs.errors import exit_code

        print(f"error: {visible_lines(str(error))}", file=sys.stderr)
        raise SystemExit(exit_code(error)) from None
    except OSError as error:
        if error.errno not in UNWRITABLE:
            raise
        where = error.filename or "a file or the output"
        print(f"error: cannot write {where}: {error.strerror}; free some space or use another place", file=sys.stderr)
        raise SystemExit(BAD_INPUT) from None
    except SystemExit as done:
        if done.code == INTERRUPTED:  # typer turns a KeyboardInterrupt into this, without a message
            print("interrupted: completed work is kept; run the command again to continue", file=sys.stderr)
        raise


def _spelt_out(arguments: list[str]) -> list[str]:
    """A command line with its short forms written out: `eval BENCHMARK`, `--ray ADDRESS`, spellings of version 2."""
    arguments = spelt_as_now(arguments)
    if arguments[:1] == ["eval"]:
        from kinodex.cli.eval import with_run

        arguments = with_run(arguments)
    return spread_ray(arguments)
