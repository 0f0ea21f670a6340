"""Commands in the pages are understood by the command line, and files that the pages name are there."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.main import get_command

from kinodex.cli.eval.app import with_run
from kinodex.cli.main import COMMANDS, LAB, app, spread_ray
from tests.bench import decoders, gpu, ingest, search
from tests.world import sample

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
OPTION = re.compile(r"--[a-z][a-z-]*")
OURS = re.compile(r"(?:agent|docs|index|infra|jobs|kinodex|pipeline|tests)/[\w./-]+")
FILE = re.compile(r"(?:\w[\w-]*/)*\w[\w.-]*\.[a-z]\w+")
OTHERS = {"--build-arg", "--cli", "--extra-index-url", "--metrics-export-port", "--threads"}
"""Options of others (docker, pip, Ray, MCP Inspector) that prose names alone."""
ENDS = {";", "&&", "||", "|", ">", ">>", "&"}
pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


@cache
def of_programs() -> set[str]:
    """The options of the programs that draw films and measure."""
    found = set[str]()
    for program in (sample, decoders, gpu, ingest, search):
        holder = typer.Typer()
        holder.command()(program.main)
        found |= {name for each in get_command(holder).params for name in each.opts}
    return found


def prose(page: Path) -> str:
    return BLOCK.sub("", page.read_text())


def typed(page: Path) -> Iterator[list[str]]:
    """The words after `kinodex` of each command in a page's console blocks."""
    for language, block in BLOCK.findall(page.read_text()):
        lines = block.replace("\\\n", " ").splitlines() if language == "console" else []
        for line in (line.removeprefix("$ ") for line in lines if line.startswith("$ ")):
            yield from commands(line)


def commands(line: str) -> Iterator[list[str]]:
    """The kinodex commands of a line of shell, without comments, redirections and an ellipsis."""
    words = shlex.shlex(line, posix=True, punctuation_chars=True)
    words.whitespace_split = True
    words.commenters = "#"
    command: list[str] = []
    for word in [*words, ";"]:
        if word not in ENDS:
            command.append(word)
            continue
        program = [each for each in command if not re.fullmatch(r"[A-Z_]+=.*", each)]
        if program[:1] and Path(program[0]).name == "kinodex":
            yield [each for each in program[1:] if each != "..."]
        command = []


@cache
def whole() -> Any:
    """The command line."""
    command: Any = get_command(app)
    for name in COMMANDS:  # each is imported when it is first asked for
        command.get_command(None, name)
    for name in LAB:
        command.commands["lab"].get_command(None, name)
    adding = command.commands["add"]
    for name in adding.list_commands(None):
        adding.get_command(None, name)
    return command


def understood(words: list[str]) -> None:
    """Have the command line read the words, types and required ones too, without running anything.

    Raises its usage error.
    """
    command = whole()
    above, name, rest = None, "kinodex", with_run(spread_ray(words))
    while True:
        context = command.make_context(name, rest, parent=above)
        if not hasattr(command, "commands"):
            return
        name, command, rest = command.resolve_command(context, [*context._protected_args, *context.args])
        above = context


@cache
def options(words: tuple[str, ...]) -> frozenset[str]:
    """The options of the command that these words name, and of all commands below it."""
    command = whole()
    for word in words:
        command = command.commands[word]
    below = getattr(command, "commands", {})
    own = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    return frozenset(own).union({"--help"}, *(options((*words, name)) for name in below))


def named(text: str) -> tuple[str, ...]:
    """The command that inline code such as `kinodex eval lvbench --at-once 4` names; KeyError if there is none."""
    command = whole()
    found: list[str] = []
    for word in with_run(text.split()[1:]):
        if not hasattr(command, "commands") or not re.fullmatch(r"[a-z]+", word):
            break
        command = command.commands[word]
        found.append(word)
    return tuple(found)


@pytest.mark.slow
@pages
def test_commands_are_understood(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for words in typed(page):
        for name in filter(FILE.fullmatch, words):  # the reader's, which some options want to be there
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            Path(name).touch()
        try:
            understood(words)
        except Exception as error:
            pytest.fail(f"{page.name}: kinodex {shlex.join(words)}: {error}")


@pages
def test_options_and_commands_in_prose_exist(page: Path) -> None:
    for code in INLINE.findall(prose(page)):
        if code.startswith("kinodex ") or code == "kinodex":
            try:
                known = options(named(code))
            except KeyError as error:
                pytest.fail(f"{page.name}: `{code}`: there is no command {error}")
        elif code.startswith("--"):
            known = options(()) | OTHERS | of_programs()
        else:
            continue
        unknown = set(OPTION.findall(code)) - known
        assert not unknown, f"{page.name}: `{code}`: there is no option {', '.join(unknown)}"


@pages
def test_files_in_prose_are_there(page: Path) -> None:
    files = {code for code in INLINE.findall(prose(page)) if OURS.fullmatch(code)}
    missing = sorted(file for file in files if not (ROOT / file).exists())
    assert not missing, f"{page.name} names {', '.join(missing)}"
