"""Measure what starting a command costs: `python -m tests.bench.start`.

Each command is a process of its own on one core, with its files in the page cache and its bytecode compiled: the first
round of all is not counted. The cheapest of the other rounds counts, in seconds of CPU (user and system) and in the
peak of resident memory: other work on the machine can only add to them. With `beside`, another checkout runs the same
commands on the same libraries, in turn with this one.
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
from tests.support.say import say

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
class Checkout:
    """A folder with kinodex's source and the interpreter that runs it."""

    folder: Path
    python: Path

    @classmethod
    def at(cls, folder: Path) -> Checkout:
        """The checkout in a folder, with the interpreter of its `.venv`, else this one; raises UsageError if none."""
        if not (folder / "kinodex" / "cli" / "main.py").exists():
            raise UsageError(f"got --beside {folder}, which is no checkout of kinodex; give a folder with its source")
        python = folder / ".venv" / "bin" / "python"
        return cls(folder.absolute(), python.absolute() if python.exists() else Path(sys.executable))


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
    """The least CPU seconds and peak memory of a command, here and in the checkout beside."""

    name: str
    cpu_s: float
    peak_mb: float
    goal_s: float | None
    goal_mb: float | None
    beside_cpu_s: float | None = None
    beside_peak_mb: float | None = None


def bench_start(
    directory: Path,
    spaces: Sequence[str],
    rounds: int,
    report: Callable[[str], None],
    beside: Path | None = None,
    python: Path | None = None,
) -> list[StartFigures]:
    """Measure the commands on a library in each space, made in `directory` where missing.

    `python` is another interpreter for this checkout, such as that of an environment with the base install alone.
    Raises UsageError if a command fails.
    """
    here = Checkout(Path(__file__).parents[2], python or Path(sys.executable))
    sides = [here] if beside is None else [here, Checkout.at(beside)]
    libraries = {space: prepare(directory, space) for space in spaces}
    figures = []
    with tempfile.TemporaryDirectory() as scratch:
        for command in commands(libraries, Path(scratch)):
            best = measure(command, sides, rounds)
            figures.append(StartFigures(command.name, *best[0], command.goal_s, command.goal_mb, *sum(best[1:], ())))
            report(f"{command.name}: {best[0][0]:.2f} s, {best[0][1]:.0f} MB")
    return figures


def prepare(directory: Path, space: str) -> str:
    """Make three short sketch films and their library in a space, where missing; returns the library's place."""
    from kinodex.index.library import Library
    from kinodex.jobs.ingest.config import IngestConfig
    from kinodex.jobs.ingest.run import run_ingest
    from kinodex.pipeline.sources import list_sources
    from kinodex.sketch.sample import sample

    directory = directory.absolute()
    films = directory / "films"
    if not (films / "questions.jsonl").exists():
        sample(films, HOURS, SEED)
    place = str(directory / f"library-{re.sub(r'[^A-Za-z0-9]+', '-', space)}")
    if not Library.exists(place):
        run_ingest(IngestConfig(space=space), list_sources([str(films)]), place)
    return place


def commands(libraries: dict[str, str], scratch: Path) -> list[StartCommand]:
    """List the commands: those that load no tower on the first library, the searches on each."""
    first = next(iter(libraries.values()))
    frame = ("--video", "film-01", "--at", "10", "--out", str(scratch))
    listed = [
        StartCommand("kinodex --help", ("-c", RUN, "--help")),
        StartCommand("kinodex info", ("-c", RUN, "info", first), 0.7),
        StartCommand("kinodex frames", ("-c", RUN, "frames", first, *frame), 0.8),
        StartCommand("kinodex agents", ("-c", RUN, "agents"), 0.8),
        StartCommand("import kinodex; kinodex.open(...)", ("-c", OPEN, first), 0.6),
    ]
    for space, place in libraries.items():
        search = ("-c", RUN, "search", place, WORDS)
        listed.append(StartCommand(f"kinodex search ({space})", search, 1.2, 350.0))
        later = ("-c", FIRST_SEARCH, place, WORDS)
        listed.append(StartCommand(f"first search beyond the text tower ({space})", later, 0.05, prints_cpu=True))
    return listed


def measure(command: StartCommand, sides: Sequence[Checkout], rounds: int) -> list[tuple[float, float]]:
    """The least CPU seconds and the least peak in MB of a command on each side, the sides in turn."""
    runs: list[list[tuple[float, float]]] = [[] for _ in sides]
    for _ in range(rounds + 1):
        for side, done in zip(sides, runs, strict=True):
            done.append(run_once(command, side))
    return [(min(cpu_s for cpu_s, _ in done[1:]), min(peak_mb for _, peak_mb in done[1:])) for done in runs]


def run_once(command: StartCommand, side: Checkout) -> tuple[float, float]:
    """CPU seconds and peak memory in MB of one run; raises UsageError with the command's own words if it fails."""
    environment = {**os.environ, "PYTHONPATH": str(side.folder)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # else each start would compile what it imports
    core = min(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else -1
    ours, theirs = os.pipe()
    with os.fdopen(ours) as report:
        launch = [sys.executable, "-I", "-S", "-c", LAUNCHER, str(theirs), str(core)]
        done = subprocess.run(
            [*launch, str(side.python), *command.arguments],
            cwd=side.folder,  # which Python looks through first
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
        raise UsageError(f"{command.name} of {side.folder} ended with {code}: {done.stderr.strip()[-500:]}")
    peak_mb = peak / (1024 if sys.platform != "darwin" else 1024**2)  # KiB, on macOS bytes
    return (float(done.stdout) if command.prints_cpu else cpu_s), peak_mb


def table(figures: Sequence[StartFigures]) -> str:
    """The figures as a table in Markdown, with the checkout beside and the ratio where there is one."""
    compared = any(each.beside_cpu_s is not None for each in figures)
    head = ["command", *(["beside"] if compared else []), "here", *(["ratio"] if compared else []), "goal"]
    rows = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for each in figures:
        goals = [f"{each.goal_s:g} s" if each.goal_s else "", f"{each.goal_mb:g} MB" if each.goal_mb else ""]
        cells = [f"`{each.name}`", _cost(each.cpu_s, each.peak_mb), ", ".join(filter(None, goals)) or "-"]
        if each.beside_cpu_s is not None and each.beside_peak_mb is not None:
            cells.insert(1, _cost(each.beside_cpu_s, each.beside_peak_mb))
            cells.insert(3, f"{each.cpu_s / each.beside_cpu_s:.2f}" if each.beside_cpu_s > 0 else "-")
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def _cost(cpu_s: float, peak_mb: float) -> str:
    return f"{cpu_s:.2f} s, {peak_mb:.0f} MB"


def main(
    directory: Annotated[Path, typer.Argument(help="Folder for films and libraries; existing ones are used.")],
    space: Annotated[list[str] | None, typer.Option(help="Space of a library to search; may be repeated.")] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds; the cheapest counts.")] = 5,
    beside: Annotated[Path | None, typer.Option(help="Another checkout of kinodex.")] = None,
    python: Annotated[Path | None, typer.Option(help="Another interpreter for this checkout.")] = None,
) -> None:
    """Measure what starting a command costs: CPU seconds and peak memory on one core, warm, the best of some rounds."""
    print(table(bench_start(directory, space or ["builtin"], rounds, say, beside, python)))


if __name__ == "__main__":
    typer.run(main)
