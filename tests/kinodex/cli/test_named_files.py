"""Files that a user names: a device is refused unread, and no depth and no terminal ends in a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kinodex.index.named_files import NotTaken, read_bytes
from tests.support.command import Kinodex, bad
from tests.world.benchmark import SKETCHES

ENDPOINT = ("--model", "m", "--base-url", "http://127.0.0.1:1/v1")
COMMANDS: dict[str, tuple[object, ...]] = {
    "a.toml": ("ingest", "FILMS", "--library", "LIBRARY", "--config", "FILE"),
    "a.yaml": ("ingest", "FILMS", "--library", "LIBRARY", "--config", "FILE"),
    "models.toml": ("ask", "LIBRARY", "What?", "--models", "FILE"),
    "ranges.jsonl": ("export", "csv", "LIBRARY", "--ranges", "FILE"),
    "trace.jsonl": ("export", "csv", "LIBRARY", "--trace", "FILE"),
    "replay.jsonl": ("ask", "LIBRARY", "What?", "--model", "replay:FILE"),
    "schema.json": ("extract", "LIBRARY", "--schema", "FILE", "--into", "t", *ENDPOINT, "--dry-run"),
    "plan.json": ("ask", "LIBRARY", "What?", "--agent", "all", "--plan", "FILE", *ENDPOINT),
}
"""A command that reads a file of each kind."""


def command(name: str, library: Path, films: Path, file: Path) -> list[str]:
    """The arguments of a command with the file in the place of FILE."""
    words = {"FILMS": str(films), "LIBRARY": str(library), "FILE": str(file), "replay:FILE": f"replay:{file}"}
    return [words.get(str(each), str(each)) for each in COMMANDS[name]]


@pytest.mark.parametrize("name", [*COMMANDS, "ids.txt", "picture.png"])
def test_a_device_is_refused_unread(name: str, kinodex: Kinodex, library: Path, films: Path, tmp_path: Path) -> None:
    file = tmp_path / name
    file.symlink_to("/dev/null")  # as /dev/zero, which would take all memory
    if name == "picture.png":
        bad(kinodex, "search", library, "--image", file, code=2, says="is no file, but a device")
    elif name == "ids.txt":
        questions = films / "questions.jsonl"
        bad(kinodex, "eval", "check", SKETCHES, questions, "--ids", file, code=2, says="is no file")
    else:
        bad(kinodex, *command(name, library, films, file), code=2, says="is no file, but a device")


@pytest.mark.parametrize("name", COMMANDS)
def test_any_depth_is_one_line(name: str, kinodex: Kinodex, library: Path, films: Path, tmp_path: Path) -> None:
    file = tmp_path / name
    file.write_text({".toml": "fps = ", ".yaml": "fps: "}.get(file.suffix, "") + "[" * 20_000 + "]" * 20_000)
    assert kinodex(*command(name, library, films, file)).error_line


@pytest.mark.timeout(60)
def test_a_pipe_is_read_if_somebody_writes_into_it(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(NotTaken, match="nobody writes"):
        read_bytes(pipe)
    reading, writing = os.pipe()
    os.write(writing, b"{}")
    os.close(writing)
    assert read_bytes(Path(f"/dev/fd/{reading}")) == b"{}"  # as a shell gives `<(...)`
    os.close(reading)


def test_the_exit_code_holds_where_no_error_can_be_printed(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        program = "import sys; from kinodex.cli.main import main; sys.argv = ['kinodex', *sys.argv[1:]]; main()"
        command = [sys.executable, "-c", program, "info", str(tmp_path / "none")]
        assert subprocess.run(command, stderr=full).returncode == 4


def test_a_level_of_lances_log_that_is_none_is_one_line(tmp_path: Path) -> None:
    program = "import sys; from kinodex.cli.main import main; sys.argv = ['kinodex', *sys.argv[1:]]; main()"
    command = [sys.executable, "-c", program, "info", str(tmp_path / "none")]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "LANCE_LOG": "loud"})
    assert done.returncode == 2 and done.stderr.startswith("error: got LANCE_LOG=loud")
