"""The command line as a whole: help, version, spellings of version 2, errors in one line, exit codes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from kinodex.cli import demo
from kinodex.cli.main import COMMANDS, LAB
from kinodex.cli.options import OLDER_COMMANDS, OLDER_OPTIONS, spelt_as_now
from tests.support.command import Kinodex, bad, json_of

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
    assert imported.split() == ["kinodex.cli.main", "kinodex.cli.options"]
    assert len(page) <= 40 and max(map(len, page)) <= 80
    shown = [line.split()[1] for line in page if line.startswith("│") and line.split()[1:2]]
    names = [name for name in shown if not name.startswith("-")]
    assert names == [name for name, place in COMMANDS.items() if place.line]
    assert not {"lab", "sample", "view", "frames"} & set(names)


def test_h_is_help_everywhere(kinodex: Kinodex) -> None:
    for words in ((), ("lab",), ("ask",), ("add",), ("add", "captions")):
        assert kinodex(*words, "-h").out == kinodex(*words, "--help").out != ""
    assert all(name in kinodex("lab", "-h").out for name in LAB)


def test_few_options_stand_before_the_panel_of_the_others(kinodex: Kinodex) -> None:
    for command in ("ask", "ingest"):
        common, rest = kinodex(command, "--help").out.split("─ More ─")
        assert common.count("--") <= 20, command
        assert rest.count("--") >= 10, command


def test_every_spelling_of_version_2_is_rewritten_with_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    for older, newer in OLDER_COMMANDS.items():
        assert spelt_as_now([*older.split(), "x", "--json"]) == [*newer.split(), "x", "--json"]
        assert capsys.readouterr().err.startswith(f"note: kinodex {older} is called kinodex {newer} now")
    for command, options in OLDER_OPTIONS.items():
        for older, newer in options.items():
            words = [*command.split(), "x", older, "y", f"{older}=z", "--", older]
            joined = f"{newer}=z" if newer.startswith("--") else f"{newer}z"
            assert spelt_as_now(words) == [*command.split(), "x", newer, "y", joined, "--", older]
            assert capsys.readouterr().err.count(f"note: {older} is called {newer} now") == 2
    same = ["ask", "lib", "--only", "--text", "name"]
    assert spelt_as_now(same) == same and capsys.readouterr().err == ""


def test_commands_of_version_2_do_what_they_did(kinodex: Kinodex, library: Path, tmp_path: Path) -> None:
    assert json_of(kinodex, "report", library) == json_of(kinodex, "info", library, "--runs") != []
    at = ("--video", "film-01", "--at", 3)
    older = kinodex("frames", library, *at, "--out", tmp_path / "older")
    newer = kinodex("export", "frames", library, tmp_path / "newer", *at)
    assert older.err.startswith("note: kinodex frames LIBRARY --out FOLDER is called kinodex export frames")
    assert (older.out.replace("older", "newer"), newer.err) == (newer.out, "")


def test_an_unknown_command_is_refused_with_the_names_near_it(kinodex: Kinodex) -> None:
    ran = kinodex("serch")
    assert ran.code == 2
    assert "No such command 'serch'. Did you mean 'search', 'serve'?" in ran.err


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_is_one_line(kinodex: Kinodex, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def interrupted(directory: Path) -> None:
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(demo, "demo", interrupted)
    ran = kinodex("demo", tmp_path)
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
    bad(kinodex, "sample", tmp_path, code=2, says=f"{tmp_path} already exists; give a new or an empty folder")
    bad(kinodex, "sample", tmp_path / "trace.jsonl", code=2, says="already exists")
    assert [path.name for path in tmp_path.iterdir()] == ["trace.jsonl"]


@pytest.mark.slow
@pytest.mark.parametrize("command", ["info LIBRARY", "search LIBRARY boat --json", "--help"])
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
