"""MLVU as published: a file for each task."""

from __future__ import annotations

from pathlib import Path

from kinodex.jobs.eval.benchmarks import read_benchmark
from kinodex.jobs.eval.samples import Target
from tests.support.libraries import benchmark_files as kit
from tests.support.libraries.benchmark_files import only, problems, read


def test_mlvu(tmp_path: Path) -> None:
    item = only(tmp_path, "mlvu", video="1_plotQA/movie101_66.mp4")
    assert (item.item_id, item.video, item.truth, item.duration_s) == ("1_plotQA-1", "movie101_66.mp4", Target(3), 246)
    assert item.question.options == kit.CHOICES[:4]
    assert item.groups == {"task": ("plotQA",), "kind": ("single detail",)}


def test_a_folder_has_all_tasks_and_a_file_of_one_task_has_that(tmp_path: Path) -> None:
    kit.write_json(tmp_path / "1_plotQA.json", [kit.mlvu_row(), kit.mlvu_row("b.mp4")])
    counted = kit.mlvu_row("count_1.mp4", question_type="count", candidates=["1", "2"], answer="2")
    kit.write_json(tmp_path / "4_count.json", [counted, {"video": "no question"}])
    benchmark = read_benchmark("mlvu", tmp_path)
    assert [item.item_id for item in benchmark.samples] == ["1_plotQA-1", "1_plotQA-2", "4_count-1"]
    assert benchmark.samples[2].groups == {"task": ("count",), "kind": ("multi-detail",)}
    assert [where for where, _ in problems(benchmark)] == ["4_count.json, row 2"]
    alone = read_benchmark("mlvu", tmp_path / "4_count.json")
    assert [item.item_id for item in alone.samples] == ["4_count-1"]


def test_the_test_set_has_ids_and_no_answers(tmp_path: Path) -> None:
    row = {name: value for name, value in kit.mlvu_row(question_id="TM_7").items() if name != "answer"}
    kit.write_json(tmp_path / "test_question.json", [row])
    (item,) = read_benchmark("mlvu", tmp_path).samples
    assert (item.item_id, item.truth.known) == ("TM_7", False)


def test_an_answer_that_is_no_candidate_is_listed(tmp_path: Path) -> None:
    benchmark = read(tmp_path, "mlvu", kit.mlvu_row(answer="a moon"), kit.mlvu_row(answer=" a drum "))
    assert [item.truth for item in benchmark.samples] == [Target(1)]
    assert problems(benchmark) == [("row 1", "answer: got 'a moon', which is none of the 4 candidates")]


def test_free_answers_are_judged(tmp_path: Path) -> None:
    kit.write_json(tmp_path / "9_summary.json", [kit.mlvu_open_row("s.mp4", question_type="summary")])
    benchmark = read(tmp_path, "mlvu-open")
    assert [item.item_id for item in benchmark.samples] == ["8_sub_scene-1", "9_summary-1"]
    assert benchmark.samples[0].truth == Target(text="He knocks and leaves.")
    assert (benchmark.scoring, benchmark.samples[1].groups["kind"]) == ("judge", ("holistic",))


def test_an_answer_that_is_two_candidates_is_noted(tmp_path: Path) -> None:
    benchmark = read(tmp_path, "mlvu", kit.mlvu_row(candidates=["a lamp", "a drum", "a lamp"]))
    assert benchmark.samples[0].truth == Target(0)
    assert "the text of several candidates; the first of them counts as right" in problems(benchmark)[0][1]
