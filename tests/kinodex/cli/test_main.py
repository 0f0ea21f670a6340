"""The command line as a whole: help, version, spellings of version 2, errors in one line, exit codes."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from importlib.metadata import version
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
from typer import Context
from typer.core import TyperGroup
from typer.main import get_command

from kinodex.cli import demo
from kinodex.cli.export.command import KINDS
from kinodex.cli.main import COMMANDS, LAB, app
from kinodex.cli.meant import KIND_FIRST, MEANT
from tests.support.command import Kinodex, bad

HELP = """
import sys
HEAVY = {"torch", "ray", "lance", "transformers", "open_clip", "av", "pyarrow", "openai", "PIL", "numpy"}
sys.argv = ["kinodex", "--help"]
from kinodex.cli.main import main
try:
    main()
finally:
    print(*sorted(name for name in sys.modules if name.startswith("kinodex.cli.") or name in HEAVY))
"""


def test_version(kinodex: Kinodex) -> None:
    assert kinodex("--version").out == f"kinodex {version('kinodex')}\n"


def test_help_fits_a_screen_and_imports_no_command() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", HELP], capture_output=True, text=True, check=True, env={"COLUMNS": "80"}
    )
    *page, imported = ran.stdout.splitlines()
    assert imported.split() == ["kinodex.cli.main", "kinodex.cli.meant"]
    assert len(page) <= 42 and max(map(len, page)) <= 80
    shown = [line.split()[1] for line in page if line.startswith("│") and line.split()[1:2]]
    names = [name for name in shown if not name.startswith("-")]
    assert names == [name for name, place in COMMANDS.items() if place.line]
    assert not {"lab", "use-space"} & set(names)


def test_h_is_help_everywhere(kinodex: Kinodex) -> None:
    for words in ((), ("lab",), ("ask",), ("add",), ("add", "captions")):
        assert kinodex(*words, "-h").out == kinodex(*words, "--help").out != ""
    assert all(name in kinodex("lab", "-h").out for name in LAB)


def test_few_options_stand_before_the_panel_of_the_others(kinodex: Kinodex) -> None:
    for command in ("ask", "ingest"):
        common, rest = kinodex(command, "--help").out.split("─ More ─")
        assert common.count("--") <= 20, command
        assert rest.count("--") >= 10, command


def test_an_unknown_command_is_refused_with_the_names_near_it(kinodex: Kinodex) -> None:
    ran = kinodex("serch")
    assert ran.code == 2
    assert "No such command 'serch'. Did you mean 'search', 'serve'?" in ran.err


def test_a_command_of_habit_is_refused_with_the_one_that_is_meant(
    kinodex: Kinodex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lib").mkdir()
    for typed, command in {
        "index films --library lib": "ingest FILMS --library LIBRARY",
        "add transcript lib": "add speech LIBRARY",
        "import subtitles folder lib": "import speech FOLDER LIBRARY",
        "export mp4 lib out": "export clips LIBRARY FOLDER",
        "set lib camera=front": "set metadata LIBRARY TABLE",
        "remove s3://bucket/lib film-01": "remove videos LIBRARY VIDEO",
    }.items():
        bad(kinodex, *typed.split(), code=2, says=f"which is no command; did you mean `kinodex {command}`?")
    bad(kinodex, "eval", "videomme", "lib", code=2, says="video-mme")


def is_command(words: list[str]) -> bool:
    """True if the first of these words are a command, whatever it makes of the others."""
    command: Any = get_command(app)
    for word in words:
        if not isinstance(command, TyperGroup):
            return True
        if (command := command.get_command(Context(command), word)) is None:
            return False
    return True


def test_every_command_that_is_meant_is_there() -> None:
    for typed, command in {**MEANT, **KIND_FIRST}.items():
        words = list(takewhile(str.islower, command.split()))
        assert is_command(words), (typed, command)
        if words[0] == "export":
            assert words[1] in KINDS
        if typed.startswith("export "):
            assert typed.removeprefix("export ") not in KINDS
        elif typed not in KIND_FIRST:
            assert not is_command(typed.split()), f"{typed} is a command itself"


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_is_one_line(kinodex: Kinodex, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(demo, "demo", interrupted)
    ran = kinodex("demo")
    assert ran.code == 130
    assert ran.err.strip() == "interrupted: completed work is kept; run the command again to continue"


def test_missing_memory_is_one_line(kinodex: Kinodex, tmp_path: Path) -> None:
    """In the words of Python, the loader and C++; here of a user's own file, whose other errors keep theirs."""
    file = tmp_path / "mine.py"
    for error in (
        "MemoryError()",
        "RuntimeError('can\\'t start new thread')",
        "ImportError('x.so: failed to map segment')",
    ):
        file.write_text(f"raise {error}\n")
        bad(kinodex, "add", "map", tmp_path, f"{file}:mine", "--into", "mine", code=2, says="no memory is left")


def test_files_that_make_no_sense_are_refused(kinodex: Kinodex, films: Path, tmp_path: Path) -> None:
    (tmp_path / "trace.jsonl").write_text("{}\n")
    questions = ("--questions", films / "questions.jsonl")
    bad(kinodex, "lab", "rollouts", tmp_path / "trace.jsonl", *questions, code=2, says="trace.jsonl")


@pytest.mark.slow
@pytest.mark.parametrize("command", ["info LIBRARY", "info LIBRARY --json", "--help"])
def test_a_reader_that_leaves_ends_a_command_silently_as_sigpipe_would(library: Path, command: str) -> None:
    words = [str(library) if word == "LIBRARY" else word for word in command.split()]
    reader, writer = os.pipe()
    os.close(reader)  # nobody reads
    try:
        called = [sys.executable, "-c", "from kinodex.cli.main import main; main()", *words]
        ran = subprocess.run(called, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    finally:
        os.close(writer)
    assert (ran.returncode, ran.stderr) == (141, "")


@pytest.mark.slow
def test_closed_streams_and_few_files_are_no_traceback(library: Path) -> None:
    command = shlex.join([sys.executable, "-c", "from kinodex.cli.main import main; main()"])

    def ran(line: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)

    closed = ">&- 2>&- <&-"
    for streams in (">&-", "<&-", closed):
        found = ran(f"{command} info {library} {streams}")
        assert (found.returncode, found.stderr) == (0, ""), streams
    for streams in ("2>&-", closed):
        assert ran(f"{command} info /nowhere {streams}").returncode == 4, streams
    for limit in (8, 63):
        short = ran(f"ulimit -n {limit}; {command} search {library} boat")
        assert (short.returncode, short.stderr.count("\n")) == (2, 1) and "ulimit -n 1024" in short.stderr, limit
    assert ran(f"ulimit -S -n 16; {command} info {library}").returncode == 0, "what it may raise it raises"
