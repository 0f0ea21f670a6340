"""The command line: `kinodex`. Commands import what they need when they run, so that `--help` is quick."""

from __future__ import annotations

import os
import re
import sys
from errno import EDQUOT, ENOSPC, EROFS
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, ClassVar, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption
from typer.main import get_command

from kinodex.cli.meant import Group
from kinodex.output import say, tell

if TYPE_CHECKING:
    from typer._click import Command, Context, HelpFormatter, Parameter


class Place(NamedTuple):
    """Where a command or group of commands is: module and name there; its line in `--help`, which hides it if empty."""

    where: str
    line: str = ""
    panel: str = ""


START, MORE, TRY = "Index, find, ask", "Fill a library, use it elsewhere, keep it in order", "Compare, connect, try"
COMMANDS = {
    "ingest": Place("kinodex.cli.ingest:ingest", "Index videos; run again, it does only what is new.", START),
    "search": Place("kinodex.cli.search:search", "Find moments by words, a picture or both.", START),
    "ask": Place("kinodex.cli.ask:ask", "Answer a question, with the evidence.", START),
    "watch": Place("kinodex.cli.watch:watch", "Ask about a video of the web; watch a camera.", START),
    "serve": Place("kinodex.cli.serve:serve", "Look, ask and play in a browser, and answer programs.", START),
    "ground": Place("kinodex.cli.ground:ground", "Find the times at which something happens.", START),
    "info": Place("kinodex.cli.info:info", "Show a library: videos, failures, runs.", START),
    "add": Place("kinodex.cli.add.app:app", "Add captions, speech, text on screen, chapters, ...", MORE),
    "extract": Place("kinodex.cli.add.app:extract", "Fill in a table from scenes, by a schema.", MORE),
    "sql": Place("kinodex.cli.sql:sql", "Run SQL over a library.", MORE),
    "import": Place("kinodex.cli.import_text:import_app", "Bring in captions or transcripts made elsewhere.", MORE),
    "speakers": Place("kinodex.cli.speakers:speakers", "List and name the people who speak.", MORE),
    "duplicates": Place("kinodex.cli.duplicates:duplicates", "Find videos that show the same.", MORE),
    "export": Place("kinodex.cli.export.command:export", "Write clips, frames, subtitles, data sets.", MORE),
    "remove": Place("kinodex.cli.remove:remove_app", "Remove videos, what was added, or voices.", MORE),
    "maintain": Place("kinodex.cli.maintain:maintain", "Clean up a library, or check it.", MORE),
    "use-space": Place("kinodex.cli.use_space:use_space"),
    "set": Place("kinodex.cli.metadata:set_app", "Set columns about the videos: metadata.", MORE),
    "relocate": Place("kinodex.cli.addresses:relocate", "Say where moved files are by now.", MORE),
    "clean": Place("kinodex.cli.clean:clean", "Free caches and old traces.", MORE),
    "agents": Place("kinodex.cli.agents:agents", "List the agents and their parameters.", TRY),
    "eval": Place("kinodex.cli.eval.app:app", "Compare agents on a benchmark.", TRY),
    "mcp": Place("kinodex.cli.mcp:mcp", "Serve a library to an assistant.", TRY),
    "doctor": Place("kinodex.cli.doctor:doctor", "Try each part of this machine.", TRY),
    "demo": Place("kinodex.cli.demo:demo", "The whole job, on your films or on photographs, offline.", TRY),
    "lab": Place("kinodex.cli.main:lab"),
}
"""All commands, in the order of `--help`."""
LAB = {
    "rollouts": Place("kinodex.cli.lab:rollouts", "Write runs as conversations to train on."),
    "train": Place("kinodex.cli.lab:train_app", "Train models of the agents."),
}
"""The commands of `kinodex lab`."""


class Commands(Group):
    """A group whose commands are imported when they are first used, so that no command pays for the others."""

    table: ClassVar[dict[str, Place]] = COMMANDS

    def list_commands(self, ctx: Context) -> list[str]:
        return list(self.table)

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:
        """Return the command or group of a name.

        Return None if there is none: then all are imported, for the names that are near.
        """
        for name in [cmd_name] if cmd_name in self.table else self.table:
            if name not in self.commands:
                self.add_command(_load(name, self.table[name].where), name)
        return super().get_command(ctx, cmd_name)

    def format_help(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write the page of the table's lines; no command is imported for it."""
        known = dict(self.commands)
        for name, place in self.table.items():
            line = TyperCommand(name, help=place.line, rich_help_panel=place.panel or None, hidden=not place.line)
            self.commands[name] = line
        super().format_help(ctx, formatter)
        self.commands = known

    def get_params(self, ctx: Context) -> list[Parameter]:
        """Return the options; those for completion of a shell work without standing in `--help`."""
        found = super().get_params(ctx)
        for each in found:
            if isinstance(each, TyperOption) and "completion" in (each.name or ""):
                each.hidden = True
        return found


class Lab(Commands):
    """The commands that train."""

    table = LAB


def _load(name: str, where: str) -> Command:
    module, _, attribute = where.partition(":")
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

        say(f"kinodex {version('kinodex')}")
        raise typer.Exit


UNWRITABLE = (ENOSPC, EDQUOT, EROFS)
"""Errors of a write that are no fault of the program: a full disk, or one that is read-only."""

LEAST_FILES, MOST_FILES = 64, 4096
"""Files that a process may have open: fewer are refused at once, and as many are allowed where the system lets them."""
NO_FILES = "no further file can be opened; raise the limit (ulimit -n 1024), or end what has files open"

HELP_NAMES = {"help_option_names": ["-h", "--help"]}
lab = typer.Typer(cls=Lab, no_args_is_help=True, help="Train models of the agents: rarely needed.")
app = typer.Typer(cls=Commands, no_args_is_help=True, pretty_exceptions_enable=False, context_settings=HELP_NAMES)


@app.callback()
def kinodex(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Index a video library once, then ask about it for the price of a few frames."""


def main() -> None:
    """Run the command line. An error of the tree in jobs/errors.py becomes one line on stderr and an exit code."""
    from typer._click.exceptions import ClickException, NoArgsIsHelpError

    from kinodex.errors import KinodexError
    from kinodex.jobs.child_processes import isolated_children
    from kinodex.jobs.errors import BAD_INPUT, EXTRAS, INTERRUPTED, PIPE_CLOSED, lacks_files, lacks_memory
    from kinodex.output import notes_on_stderr, open_closed_streams, write_any_text

    open_closed_streams()
    write_any_text(sys.stdout, sys.stderr)
    if allow_files() < LEAST_FILES:
        tell(f"error: {NO_FILES}")
        raise SystemExit(BAD_INPUT)
    try:
        with isolated_children(), notes_on_stderr():
            code = app(_spelt_out(sys.argv[1:]), prog_name="kinodex", standalone_mode=False)
        raise SystemExit(code or 0)
    except NoArgsIsHelpError as error:
        error.show()
        raise SystemExit(BAD_INPUT) from None
    except ClickException as error:
        context = getattr(error, "ctx", None)
        more = "" if context is None else f"; see `{context.command_path} --help`"
        tell(f"error: {error.format_message().rstrip('.')}{more}")
        raise SystemExit(BAD_INPUT) from None
    except typer.Abort:
        tell("stopped: nothing was answered, and nothing was done")
        raise SystemExit(INTERRUPTED) from None
    except ModuleNotFoundError as error:
        if error.name not in EXTRAS:
            raise
        remedy = f"pip install 'kinodex[{EXTRAS[error.name]}]'"
        tell(f"error: this needs the package {error.name}, which is not installed; {remedy}")
        raise SystemExit(BAD_INPUT) from None
    except KinodexError as error:
        from kinodex.jobs.errors import exit_code

        short = lacks_files(error)
        tell(f"error: {NO_FILES if short else error}")
        raise SystemExit(BAD_INPUT if short else exit_code(error)) from None
    except BrokenPipeError:
        _forget_output()
        raise SystemExit(PIPE_CLOSED) from None
    except Exception as error:
        if lacks_memory(error):
            tell("error: no memory is left; completed work is kept: free some, and run it again")
            raise SystemExit(BAD_INPUT) from None
        if lacks_files(error):
            tell(f"error: {NO_FILES}")
            raise SystemExit(BAD_INPUT) from None
        if not isinstance(error, OSError) or error.errno not in UNWRITABLE:
            raise
        where = error.filename or "a file or the output"
        tell(f"error: cannot write {where}: {error.strerror}; free some space or use another place")
        raise SystemExit(BAD_INPUT) from None
    except SystemExit as done:
        if _reader_left(done):
            raise SystemExit(PIPE_CLOSED) from None
        if done.code == INTERRUPTED:  # typer turns a KeyboardInterrupt into this, without a message
            tell("interrupted: completed work is kept; run the command again to continue")
        raise


def allow_files() -> int:
    """Raise the number of files that this process may have open, up to `MOST_FILES`; return what it is then."""
    try:
        import resource
    except ImportError:  # a system without such a limit
        return MOST_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MOST_FILES if hard == resource.RLIM_INFINITY else min(MOST_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        return most
    return MOST_FILES if soft == resource.RLIM_INFINITY else soft


def _reader_left(done: SystemExit) -> bool:
    """Return True if nobody reads what this process prints any more, as after `| head -1`.

    The libraries typer and rich make a 1 of that.
    """
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _forget_output()
        return True
    return isinstance(done.__context__, BrokenPipeError)


def _forget_output() -> None:
    """Send what is still printed nowhere: Python's last flush would complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _spelt_out(arguments: list[str]) -> list[str]:
    """Return a command line with its short forms written out: `eval BENCHMARK`, `--ray ADDRESS`."""
    if arguments[:1] == ["eval"]:
        from kinodex.cli.eval.app import with_run

        arguments = with_run(arguments)
        if arguments[1:2] == ["run"] and arguments[2:] and not arguments[2].startswith("-"):
            from kinodex.jobs.eval.benchmarks import find_benchmark

            find_benchmark(arguments[2])  # an unknown one is said before any option that it lacks
    return spread_ray(arguments)


def spread_ray(arguments: list[str]) -> list[str]:
    """`--ray ADDRESS` and `--ray=ADDRESS` as `--ray-address ADDRESS`; what looks like no address stays a source.

    Typer has no options whose value may be left out.
    """
    spread: list[str] = []
    for argument in arguments:
        if argument.startswith("--ray="):
            spread += ["--ray-address", argument.removeprefix("--ray=")]
        elif spread[-1:] == ["--ray"] and re.fullmatch(r"auto|local|ray://.+|[\w.\-]+:\d+", argument):
            spread[-1:] = ["--ray-address", argument]
        else:
            spread.append(argument)
    return spread
