"""`kinodex eval BENCHMARK LIBRARY` is short for `kinodex eval run BENCHMARK LIBRARY`."""

from __future__ import annotations

import pytest

from kinodex.cli.eval import with_run


@pytest.mark.parametrize(
    "line", ["eval", "eval run lvbench", "eval check lvbench", "eval --help", "ingest films library"]
)
def test_other_command_lines_stay_as_they_are(line: str) -> None:
    assert with_run(line.split()) == line.split()


def test_a_benchmark_after_eval_is_run() -> None:
    assert with_run(["eval", "lvbench", "library", "--limit", "3"]) == [
        "eval",
        "run",
        "lvbench",
        "library",
        "--limit",
        "3",
    ]


def test_old_spellings_are_taken_and_the_new_ones_named(capsys: pytest.CaptureFixture[str]) -> None:
    old = ["eval", "search", "own", "a.jsonl", "--system=frames", "--system", "fused", "--most=20", "--most", "30"]
    new = ["eval", "search", "own", "a.jsonl", "--contender=frames", "--contender", "fused", "-k20", "-k", "30"]
    assert with_run(old) == new
    assert "--system is now --contender" in capsys.readouterr().err
    assert with_run(["eval", "run", "own", "--system"])[-1] == "--system"
