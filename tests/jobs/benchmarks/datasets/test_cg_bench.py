"""CG-Bench as published, as questions."""

from __future__ import annotations

from pathlib import Path

from kinodex.jobs.eval.samples import Target
from tests.support.libraries import benchmark_files as kit
from tests.support.libraries.benchmark_files import only, problems, read


def test_cg_bench(tmp_path: Path) -> None:
    item = only(tmp_path, "cg-bench")
    assert (item.item_id, item.video, item.duration_s) == ("1", "9kGB4ITqFjI", 1853.0)
    assert item.question.options == kit.CHOICES
    assert item.truth == Target(2, evidence=((8.0, 18.0), (120.5, 131.0)))
    assert item.groups == {"domain": ("Life Record",), "sub_category": ("Object Perception",)}


def test_wrong_rows_of_cg_bench(tmp_path: Path) -> None:
    benchmark = read(
        tmp_path,
        "cg-bench",
        kit.cg_bench_row(1, right_answer="F"),
        kit.cg_bench_row(2, clue_intervals=[[8, 8], [9, 11]]),
        kit.cg_bench_row(3, clue_intervals=[["x", 8]]),
    )
    (item,) = benchmark.samples
    assert item.truth.evidence == ((9.0, 11.0),)
    texts = [what for _, what in problems(benchmark)]
    assert texts[0] == "right_answer: got F; there are 5 choices"
    assert "kept without it" in texts[1]
    assert "clue_intervals" in texts[2]
