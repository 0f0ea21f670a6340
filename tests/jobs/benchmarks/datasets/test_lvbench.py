"""LVBench as published."""

from __future__ import annotations

from pathlib import Path

import pytest

from kinodex.jobs.eval.benchmarks import read_benchmark
from kinodex.jobs.eval.samples import Target
from tests.support.libraries import benchmark_files as kit
from tests.support.libraries.benchmark_files import only, problems, read


def test_lvbench(tmp_path: Path) -> None:
    item = only(tmp_path, "lvbench")
    assert item.question.text == "What is on the roof?"
    assert item.question.options == kit.CHOICES[:4]
    assert item.truth == Target(2, evidence=((75.0, 79.0),))
    assert item.groups == {"question_type": ("key information retrieval", "reasoning"), "video_type": ("sport",)}
    assert (item.item_id, item.video, item.duration_s) == ("55", "aBc-1_x", 3690.0)


@pytest.mark.parametrize(
    ("reference", "evidence"),
    [("01:02:03-01:02:10", (3723.0, 3730.0)), ("75:10 - 76:00", (4510.0, 4560.0)), ("00:15-00:15", (15.0, 16.0))],
)
def test_lvbench_times(reference: str, evidence: tuple[float, float], tmp_path: Path) -> None:
    item = only(tmp_path, "lvbench", questions=[kit.lvbench_question(time_reference=reference)])
    assert item.truth.evidence == (evidence,)


@pytest.mark.parametrize("reference", ["", "00:20-00:15", "after 12", f"00:15-{'9' * 5000}:00"], ids=range(4))
def test_lvbench_questions_of_no_time_are_kept_without_evidence(reference: str, tmp_path: Path) -> None:
    benchmark = read(tmp_path, "lvbench", kit.lvbench_row(questions=[kit.lvbench_question(time_reference=reference)]))
    assert benchmark.samples[0].truth == Target(2)
    ((where, what),) = problems(benchmark)
    assert where == "line 1, question 1"
    assert "kept without evidence" in what


def test_a_wrong_question_of_lvbench_leaves_the_others_of_its_video(tmp_path: Path) -> None:
    questions = [
        kit.lvbench_question("1", question="What?\n(A) a kite\n(C) a drum"),
        kit.lvbench_question("2", answer="E"),
        kit.lvbench_question("3"),
        kit.lvbench_question("3"),
        kit.lvbench_question("4", question_type=[]),
    ]
    path = kit.published(tmp_path, "lvbench", kit.lvbench_row(questions=questions), {"key": "empty"})
    path.write_text(path.read_text() + "{torn\n")
    benchmark = read_benchmark("lvbench", path)
    assert [item.item_id for item in benchmark.samples] == ["3"]
    found = dict(problems(benchmark))
    assert found.keys() == {*(f"line 1, question {number}" for number in (1, 2, 4, 5)), "line 2", "line 3"}
    assert found["line 1, question 1"].startswith("question: got options AC in its text")
    assert found["line 1, question 2"] == "answer: got E; there are 4 options"
    assert found["line 1, question 4"] == "the id 3 is there already; the first row of it counts"
    assert found["line 1, question 5"].startswith("qa.question_type: ")
    assert found["line 2"].startswith("type: Field required; ")
    assert found["line 3"].startswith("not JSON: ")
