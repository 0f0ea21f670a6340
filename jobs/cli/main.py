"""The command line: `kinodex`. Commands import what they need when they run, so that `--help` is quick."""

from __future__ import annotations

import sys
from errno import EDQUOT, ENOSPC, EROFS
from typing import Annotated

import typer

from jobs.cli import add as add_command
from jobs.cli import agents as agents_command
from jobs.cli import ask as ask_command
from jobs.cli import bench as bench_command
from jobs.cli import doctor as doctor_command
from jobs.cli import import_text as import_command
from jobs.cli import ingest as ingest_command
from jobs.cli import library as library_commands
from jobs.cli import maintain as maintain_command
from jobs.cli import mcp as mcp_command
from jobs.cli import remove as remove_command
from jobs.cli import sample as sample_command
from jobs.cli import search as search_command
from jobs.cli import train as train_command
from jobs.cli import view as view_command
from jobs.cli.eval import app as eval_command
from jobs.cli.options.ingest import spread_ray


def _show_version(requested: bool) -> None:
    if requested:
        from importlib.metadata import version

        print(f"kinodex {version('kinodex')}")
        raise typer.Exit


UNWRITABLE = (ENOSPC, EDQUOT, EROFS)
"""Errors of a write that are no fault of the program: a full disk, or one that is read-only."""

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


@app.callback()
def kinodex(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Index a video library once, then answer questions about it for the price of a few frames."""


app.command("sample")(sample_command.sample)
app.command("ingest")(ingest_command.ingest)
app.command("info")(library_commands.info)
app.command("report")(library_commands.report)
app.command("view")(view_command.view)
app.command("search")(search_command.search)
app.command("frames")(library_commands.frames)
app.command("maintain")(maintain_command.maintain)
app.command("doctor")(doctor_command.doctor)
app.command("ask")(ask_command.ask)
app.command("agents")(agents_command.agents)
app.command("mcp")(mcp_command.mcp)
app.add_typer(eval_command.app, name="eval")
app.command("demo")(sample_command.demo)
app.add_typer(add_command.app, name="add")
app.add_typer(import_command.app, name="import")
app.add_typer(remove_command.app, name="remove")
app.command("rollouts")(train_command.rollouts)
app.add_typer(bench_command.app, name="bench")
app.add_typer(train_command.app, name="train")


def main() -> None:
    """Run the command line. An error of the tree in jobs/errors.py becomes one line on stderr and an exit code."""
    from index.errors import KinodexError
    from jobs.console.escape import visible_lines
    from jobs.errors import BAD_INPUT, EXTRAS, INTERRUPTED
    from pipeline.errors import PipelineError

    try:
        app(eval_command.with_run(spread_ray(sys.argv[1:])))
    except ModuleNotFoundError as error:
        if error.name not in EXTRAS:
            raise
        remedy = f"pip install 'kinodex[{EXTRAS[error.name]}]'"
        print(f"error: this needs the package {error.name}, which is not installed; {remedy}", file=sys.stderr)
        raise SystemExit(BAD_INPUT) from None
    except (KinodexError, PipelineError) as error:
        from jobs.errors import exit_code

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
            print(f"interrupted: {_left_by(sys.argv[1:])}", file=sys.stderr)
        raise


def _left_by(arguments: list[str]) -> str:
    """Describe what an interrupted command leaves."""
    if arguments[:2] == ["eval", "simulate"]:
        return "a simulation is written only at its end; run the command again to start from the beginning"
    return "completed work is kept; run the command again to continue"
