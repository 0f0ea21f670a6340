"""LongVideoBench as published."""

from __future__ import annotations

from pathlib import Path

from kinodex.jobs.eval.benchmarks import read_benchmark
from kinodex.jobs.eval.samples import Target
from tests.support.libraries import benchmark_files as kit
from tests.support.libraries.benchmark_files import only, problems, read


def test_longvideobench(tmp_path: Path) -> None:
    item = only(tmp_path, "longvideobench", video_path="@sally_xx.mp4")
    assert item.question.text == "After the man waves, what does he hold?"
    assert item.truth == Target(1)
    assert (item.item_id, item.video, item.duration_s) == ("xyz_0", "@sally_xx", 321.5)
    assert item.groups == {
        "duration_group": ("600",),
        "question_category": ("T2E",),
        "level": ("L1",),
        "topic": ("KA",),
    }


def test_longvideobench_in_parquet_has_its_options_in_columns(tmp_path: Path) -> None:
    row = kit.longvideobench_row()
    columns = {f"option{number}": option for number, option in enumerate([*row.pop("candidates"), "N/A"])}
    del row["level"], row["position"]
    path = tmp_path / "validation-00000-of-00001.parquet"
    kit.write_parquet(path, [{**row, **columns}])
    (item,) = read_benchmark("longvideobench", tmp_path).samples
    assert item.question.options == kit.CHOICES[:4]
    assert "level" not in item.groups


def test_longvideobench_test_rows_are_not_scored_here(tmp_path: Path) -> None:
    untold = kit.longvideobench_row("a")
    del untold["correct_choice"]
    rows = [untold, kit.longvideobench_row("b", correct_choice=-1), kit.longvideobench_row("c", correct_choice=4)]
    benchmark = read(tmp_path, "longvideobench", *rows)
    assert [item.truth for item in benchmark.samples] == [Target(), Target()]
    assert problems(benchmark) == [
        ("row 3", "correct_choice: got 4; there are 4 candidates, counted from 0"),
    ]


def test_an_option_that_is_not_there_moves_no_other(tmp_path: Path) -> None:
    """In the columns of the parquet file "N/A" before an option is an option, for the answer counts it."""
    row = kit.longvideobench_row(correct_choice=2)
    del row["candidates"]
    options = {f"option{number}": option for number, option in enumerate(["a kite", "N/A", "a drum", "N/A", None])}
    kit.write_parquet(tmp_path / "validation-00000-of-00001.parquet", [{**row, **options}])
    (item,) = read_benchmark("longvideobench", tmp_path).samples
    assert item.question.options == ("a kite", "N/A", "a drum")
    assert item.truth == Target(2)
