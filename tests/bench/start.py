"""Measure what starting a command costs: `python -m tests.bench.start`.

Each command is a process of its own on one core, with its files in the page cache and its bytecode compiled: the first
round of all is not counted. The cheapest of the other rounds counts, in seconds of CPU (user and system) and in the
peak of resident memory: other work on the machine can only add to them.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from kinodex.jobs.errors import UsageError
from tests.world.drawn_space import DRAWN

ROOT = Path(__file__).parents[2]
HOURS, SEED = 0.1, 1
WORDS = "an orange anchor at sea"
RUN = "import sys; from kinodex.cli.main import main; main()"
OPEN = "import sys, kinodex; kinodex.open(sys.argv[1])"
FIRST_SEARCH = """
import sys, time, kinodex
library = kinodex.open(sys.argv[1])
library.embed(sys.argv[2])
began = time.process_time()
library.search(sys.argv[2])
searched = time.process_time()
library.embed(sys.argv[2])
print(searched - began - (time.process_time() - searched))
"""
"""The first search by words in a process, less what its text tower takes: that is loaded before, and timed after."""

LAUNCHER = """
import json, os, sys
report, core = int(sys.argv[1]), int(sys.argv[2])
if core >= 0: os.sched_setaffinity(0, {core})
child = os.fork()
if child == 0:
    os.execv(sys.argv[3], sys.argv[3:])
_, status, used = os.wait4(child, 0)
figures = os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime, used.ru_maxrss
os.write(report, json.dumps(figures).encode())
"""
"""Runs a command and reports its exit code, CPU seconds and peak memory. It is small itself: a process begins with the
peak of the one that started it."""


@dataclass(frozen=True, slots=True)
class StartCommand:
    """A command that is measured: its name in the table, the arguments of Python, and its goals.

    `prints_cpu`: the command measures a part of itself, and prints its CPU seconds.
    """

    name: str
    arguments: tuple[str, ...]
    goal_s: float | None = None
    goal_mb: float | None = None
    prints_cpu: bool = False


@dataclass(frozen=True, slots=True)
class StartFigures:
    """The least CPU seconds and peak memory of a command."""

    command: StartCommand
    cpu_s: float
    peak_mb: float


def bench_start(
    directory: Path, spaces: Sequence[str], rounds: int, report: Callable[[str], None]
) -> list[StartFigures]:
    """Measure the commands on a library in each space, made where missing; raises UsageError if a command fails."""
    libraries = {space: prepare(directory, space) for space in spaces}
    figures = []
    with tempfile.TemporaryDirectory() as scratch:
        for command in commands(libraries, Path(scratch)):
            runs = [run_once(command) for _ in range(rounds + 1)][1:]
            figures.append(StartFigures(command, *(min(column) for column in zip(*runs, strict=True))))
            report(f"{command.name}: {figures[-1].cpu_s:.2f} s, {figures[-1].peak_mb:.0f} MB")
    return figures


def prepare(directory: Path, space: str) -> str:
    """Make three short sketch films and their library in a space, where missing; returns the library's place."""
    from kinodex.index.library import Library
    from kinodex.jobs.ingest.config import IngestConfig
    from kinodex.jobs.ingest.run import run_ingest
    from kinodex.pipeline.sources import list_sources
    from tests.world.sketch.films import write_films

    directory = directory.absolute()
    films = directory / "films"
    if not (films / "questions.jsonl").exists():
        write_films(films, HOURS, SEED)
    place = str(directory / f"library-{re.sub(r'[^A-Za-z0-9]+', '-', space)}")
    if not Library.exists(place):
        run_ingest(IngestConfig(space=space), list_sources([str(films)]), place)
    return place


def commands(libraries: dict[str, str], scratch: Path) -> list[StartCommand]:
    """List the commands: those that load no tower on the first library, the searches on each."""
    first = next(iter(libraries.values()))
    frame = (str(scratch), "--video", "film-01", "--at", "10")
    listed = [
        StartCommand("kinodex --help", ("-c", RUN, "--help")),
        StartCommand("kinodex info", ("-c", RUN, "info", first), 0.7),
        StartCommand("kinodex export frames", ("-c", RUN, "export", "frames", first, *frame), 0.8),
        StartCommand("kinodex agents", ("-c", RUN, "agents"), 0.8),
        StartCommand("import kinodex; kinodex.open(...)", ("-c", OPEN, first), 0.6),
    ]
    for space, place in libraries.items():
        name = "drawn films" if space == DRAWN else space
        search = ("-c", RUN, "search", place, WORDS)
        listed.append(StartCommand(f"kinodex search ({name})", search, 1.2, 350.0))
        later = ("-c", FIRST_SEARCH, place, WORDS)
        listed.append(StartCommand(f"first search beyond the text tower ({name})", later, 0.05, prints_cpu=True))
    return listed


def run_once(command: StartCommand) -> tuple[float, float]:
    """CPU seconds and peak memory in MB of one run; raises UsageError with the command's own words if it fails."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # else each start would compile what it imports
    core = min(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else -1
    ours, theirs = os.pipe()
    with os.fdopen(ours) as report:
        launch = [sys.executable, "-I", "-S", "-c", LAUNCHER, str(theirs), str(core)]
        done = subprocess.run(
            [*launch, sys.executable, *command.arguments],
            cwd=ROOT,  # which Python looks through first
            env=environment,
            pass_fds=[theirs],
            capture_output=True,
            text=True,
            check=False,
        )
        os.close(theirs)
        written = report.read()
    code, cpu_s, peak = json.loads(written) if written else (done.returncode, 0.0, 0.0)
    if code != 0:
        raise UsageError(f"{command.name} ended with {code}: {done.stderr.strip()[-500:]}")
    peak_mb = peak / (1024 if sys.platform != "darwin" else 1024**2)  # KiB, on macOS bytes
    return (float(done.stdout) if command.prints_cpu else cpu_s), peak_mb


def table(figures: Sequence[StartFigures]) -> str:
    """The figures as a table in Markdown."""
    rows = ["| command | here | goal |", "|---|---|---|"]
    for each in figures:
        goals = [(each.command.goal_s, "s"), (each.command.goal_mb, "MB")]
        goal = ", ".join(f"{figure:g} {unit}" for figure, unit in goals if figure) or "-"
        rows.append(f"| `{each.command.name}` | {each.cpu_s:.2f} s, {each.peak_mb:.0f} MB | {goal} |")
    return "\n".join(rows)


def main(
    directory: Annotated[Path, typer.Argument(help="Folder for films and libraries; existing ones are used.")],
    space: Annotated[list[str] | None, typer.Option(help="Space of a library to search; may be repeated.")] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds; the cheapest counts.")] = 5,
) -> None:
    """Measure what starting a command costs: CPU seconds and peak memory on one core, warm, the best of some rounds."""
    print(table(bench_start(directory, space or [DRAWN], rounds, lambda line: print(line, file=sys.stderr))))


if __name__ == "__main__":
    typer.run(main)
