"""Page of commands, docs/commands.md, made from the commands: `python -m docs.commands_page` prints it.

One section a command, with a row for each argument and option, so that the page can be searched and linked to.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from typer import Context
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from kinodex.cli.export.options import FOR

TITLE = """# Commands

Made from the commands themselves by `make docs`; `kinodex COMMAND --help` says the same. Exit codes and environment
variables: [operations](operations.md).
"""
DEFAULT = re.compile(r"\s*\[((?:default: |required|[^\[\]]*<=?).*)\]$")


def reference() -> str:
    """Write the whole page, in Markdown."""
    from kinodex.cli.main import app

    commands = list(_leaves(get_command(app), "kinodex"))
    return "\n".join([TITLE, *_contents(commands), *(_section(name, command) for name, command in commands)])


Named = tuple[str, TyperCommand]


def _leaves(command: object, name: str) -> Iterator[Named]:
    """Commands without subcommands under their full names, in the order of `--help`."""
    if isinstance(command, TyperGroup):
        context = Context(command, info_name=name)
        for part in command.list_commands(context):
            yield from _leaves(command.get_command(context, part), f"{name} {part}")
    elif isinstance(command, TyperCommand):
        yield name, command


def _contents(commands: list[Named]) -> list[str]:
    """Table of contents: a line for each command, with its first sentence."""
    rows = [(name, _cell(re.split(r"(?<=\.)\s", command.help or "")[0])) for name, command in commands]
    linked = [f"| [`{name}`](#{name.replace(' ', '-')}) | {first} |" for name, first in rows]
    return ["| command | does |", "|---|---|", *linked, ""]


def _section(name: str, command: TyperCommand) -> str:
    context = Context(command, info_name=name)
    usage = " ".join([name, *command.collect_usage_pieces(context)])
    prose = [_prose(each) for each in (command.help or "").split("\n\n")]
    text = [f"## {name}", "", "\n\n".join(prose), "", "```text", usage, "```", ""]
    records = [(each.param_type_name, _record(each, context)) for each in command.get_params(context)]
    shown = [
        (kind, record) for kind, record in records if record is not None and not record[0].startswith(("-h,", "--help"))
    ]
    shown.sort(key=lambda each: each[0] != "argument")
    for kind, rows in groupby(shown, key=lambda each: each[0]):
        text += [f"| {kind} | | default, range |", "|---|---|---|", *(_row(*record) for _, record in rows), ""]
    return "\n".join(text)


def _record(parameter: Any, context: Context) -> tuple[str, str] | None:
    """How a parameter is typed and what it is for; those of a panel "For ..." begin with its title."""
    found: tuple[str, str] | None = parameter.get_help_record(context)
    panel = getattr(parameter, "rich_help_panel", None) or ""
    return (found[0], f"{panel}: {found[1]}") if found and panel.startswith(FOR) else found


def _row(name: str, help_text: str) -> str:
    found = DEFAULT.search(help_text)
    default = found[1].removeprefix("default: ") if found else ""
    escaped = name.replace("|", "\\|")  # the choices of an option are no cells
    return f"| `{escaped}` | {_cell(DEFAULT.sub('', help_text))} | {_cell(default)} |"


def _prose(text: str) -> str:
    return " ".join(text.split())


def _cell(text: str) -> str:
    return _prose(text).replace("|", "\\|").replace("<", "&lt;")


if __name__ == "__main__":
    print(reference(), end="")
