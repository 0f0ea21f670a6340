"""CG-Bench as published, as searches for clues."""

from __future__ import annotations

import json
from pathlib import Path

from kinodex.jobs.eval.benchmarks import read_moment_benchmark
from tests.support.libraries.benchmark_files import cg_bench_row
from tests.support.runs.moment_files import problems


def test_clues_are_moments_and_the_answer_is_not_there(tmp_path: Path) -> None:
    rows = [
        cg_bench_row(1, choices=["PLANTED", "b"], right_answer="A", answer="PLANTED"),
        cg_bench_row(2, clue_intervals=[]),
        cg_bench_row(3, clue_intervals=[[8, 3]]),
    ]
    (tmp_path / "cgbench_mini.json").write_text(json.dumps(rows))
    benchmark = read_moment_benchmark("cg-bench", tmp_path)
    clued, unclued = benchmark.samples
    assert clued.relevant == (("9kGB4ITqFjI", 8.0, 18.0), ("9kGB4ITqFjI", 120.5, 131.0))
    assert (clued.sample_id, clued.text, clued.category) == ("1", "What is held?", "Object Perception")
    assert "PLANTED" not in repr(benchmark)
    assert not unclued.known
    assert problems(benchmark)[1:] == [
        ("row 3", "clue_intervals: got 8 to 3; it is a start from 0 on and a later end in seconds")
    ]
