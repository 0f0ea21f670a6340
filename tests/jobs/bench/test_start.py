"""`kinodex bench start`: what it runs, measures and prints."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from jobs.bench.start import Checkout, StartCommand, StartFigures, commands, measure, run_once, table
from jobs.errors import UsageError

ROOT = Path(__file__).parents[3]
HERE = Checkout(ROOT, Path(sys.executable))


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout whose command line does nothing but burn a little time."""
    folder = tmp_path_factory.mktemp("other")
    (folder / "jobs" / "cli").mkdir(parents=True)
    (folder / "jobs" / "__init__.py").touch()
    (folder / "jobs" / "cli" / "__init__.py").touch()
    (folder / "jobs" / "cli" / "main.py").write_text("def main(): sum(range(3_000_000))\n")
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
    code = "import jobs.cli.main as m; print(float('other' in m.__file__))"
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
