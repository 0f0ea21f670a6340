"""`kinodex bench start`: what it runs, measures and prints."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kinodex.index.library import Library
from kinodex.jobs.errors import UsageError
from tests.bench.start import (
    Checkout,
    StartCommand,
    StartFigures,
    bench_start,
    commands,
    measure,
    prepare,
    run_once,
    table,
)

ROOT = Path(__file__).parents[2]
HERE = Checkout(ROOT, Path(sys.executable))


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout whose command line does nothing but burn a little time."""
    folder = tmp_path_factory.mktemp("other")
    (folder / "kinodex" / "cli").mkdir(parents=True)
    (folder / "kinodex" / "__init__.py").touch()
    (folder / "kinodex" / "cli" / "__init__.py").touch()
    (folder / "kinodex" / "cli" / "main.py").write_text("def main(): sum(range(3_000_000))\n")
    return folder


@pytest.mark.slow
def test_cpu_seconds_and_memory_of_a_command_are_its_own() -> None:
    idle_s, idle_mb = run_once(StartCommand("nothing", ("-S", "-c", "import time; time.sleep(0.3)")), HERE)
    busy_s, busy_mb = run_once(
        StartCommand("work", ("-S", "-c", "x = bytearray(b'x' * 10**8); sum(range(10**7))")), HERE
    )
    assert idle_s < busy_s
    assert idle_mb < 50 < 95 < busy_mb - idle_mb  # not the memory of this process, which is larger than the child's


@pytest.mark.slow
def test_each_checkout_runs_its_own_code(other: Path) -> None:
    code = "import kinodex.cli.main as m; print(float('other' in m.__file__))"
    command = StartCommand("where", ("-c", code), prints_cpu=True)
    sides = [HERE, Checkout.at(other)]
    assert [cpu_s for cpu_s, _ in measure(command, sides, rounds=1)] == [0.0, 1.0]


@pytest.mark.slow
def test_a_command_that_fails_says_so() -> None:
    with pytest.raises(UsageError, match=r"broken of .* ended with 3: no way"):
        run_once(StartCommand("broken", ("-c", "import sys; print('no way', file=sys.stderr); sys.exit(3)")), HERE)


def test_a_folder_without_source_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is no checkout of kinodex"):
        Checkout.at(tmp_path)


def test_searches_are_measured_on_each_library(tmp_path: Path) -> None:
    listed = commands({"builtin": "a", "other": "b"}, tmp_path)
    assert [each.name for each in listed if "search" in each.name] == [
        "kinodex search (builtin)",
        "first search beyond the text tower (builtin)",
        "kinodex search (other)",
        "first search beyond the text tower (other)",
    ]
    assert [each.arguments[3] for each in listed if each.name.startswith("kinodex search")] == ["a", "b"]


def test_table_has_a_ratio_only_beside_another_checkout() -> None:
    alone = StartFigures("kinodex info", 0.5, 120.0, 0.7, None)
    beside = StartFigures("kinodex info", 0.5, 120.0, 0.7, 300.0, 2.0, 240.0)
    assert table([alone]).splitlines() == [
        "| command | here | goal |",
        "|---|---|---|",
        "| `kinodex info` | 0.50 s, 120 MB | 0.7 s |",
    ]
    assert table([beside]).splitlines() == [
        "| command | beside | here | ratio | goal |",
        "|---|---|---|---|---|",
        "| `kinodex info` | 2.00 s, 240 MB | 0.50 s, 120 MB | 0.25 | 0.7 s, 300 MB |",
    ]


@pytest.mark.slow
def test_every_command_is_measured_on_a_library_that_is_made_where_it_is_missing(
    films: Path, tiny_model: Callable[[str], Path], tmp_path: Path
) -> None:
    """The films are there already, and used."""
    shutil.copytree(films, tmp_path / "films")
    space = f"local-dir:{tiny_model('space')}"
    lines: list[str] = []
    figures = bench_start(tmp_path, [space], 1, lines.append)
    made = Library.open(prepare(tmp_path, space))
    assert (len(made.videos()), made.fingerprint.name, len(made.ingest_log.runs())) == (3, space, 1)
    listed = commands({space: ""}, tmp_path)
    assert [each.name for each in figures] == [each.name for each in listed]
    assert [each.goal_s for each in figures] == [each.goal_s for each in listed]
    assert [line.rpartition(": ")[0] for line in lines] == [each.name for each in listed]
    assert all(each.peak_mb > 20 and each.beside_cpu_s is None for each in figures)
    assert all(each.cpu_s > 0 for each in figures if not each.name.startswith("first search"))
