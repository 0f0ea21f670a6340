"""EgoSchema as published."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from kinodex.jobs.errors import UsageError
from kinodex.jobs.eval.benchmarks import annotation_files, read_benchmark
from kinodex.jobs.eval.samples import Target
from tests.support.libraries import benchmark_files as kit
from tests.support.libraries.benchmark_files import only, problems


def test_egoschema(tmp_path: Path) -> None:
    item = only(tmp_path, "egoschema")
    assert (item.item_id, item.video, item.duration_s, item.truth) == ("uid-1", "uid-1", 180.0, Target(3))
    assert item.question.options == tuple(f"C mends {choice}." for choice in kit.CHOICES)


def test_egoschema_as_its_makers_publish_it(tmp_path: Path) -> None:
    rows = [{k: v for k, v in kit.ego_row(uid).items() if k != "truth"} for uid in ("one", "two", "three")]
    kit.write_json(tmp_path / "questions.json", rows)
    kit.write_json(tmp_path / "subset_answers.json", {"two": 4, "three": 5})
    full = read_benchmark("egoschema-full", tmp_path)
    assert {item.item_id: item.truth.option for item in full.samples} == {"one": None, "two": 4}
    assert not full.samples[0].truth.known
    assert problems(full) == [("row 3", "truth: Input should be less than or equal to 4, got '5'")]
    subset = read_benchmark("egoschema", tmp_path)
    assert [item.item_id for item in subset.samples] == ["two"]
    assert [path.name for path in annotation_files("egoschema", tmp_path)] == ["questions.json", "subset_answers.json"]


def test_egoschema_questions_without_their_answers_are_not_the_scored_subset(tmp_path: Path) -> None:
    kit.write_json(tmp_path / "questions.json", [kit.ego_row(truth=None)])
    with pytest.raises(UsageError, match=r"row 1: no truth; give subset_answers.json beside questions.json, or ask"):
        read_benchmark("egoschema", tmp_path)


def test_the_real_egoschema_subset(benchmarks: Path) -> None:
    read = read_benchmark("egoschema", benchmarks / "egoschema")
    assert len(read.samples) == 500
    assert Counter(item.truth.option for item in read.samples) == {0: 101, 1: 108, 2: 91, 3: 83, 4: 117}
    assert [each.what[:34] for each in read.problems] == ["options C and E have the same text"]


def test_answers_beside_the_questions_fill_what_a_row_leaves_open(tmp_path: Path) -> None:
    rows = [kit.ego_row("a", truth=None), kit.ego_row("b", truth=None), kit.ego_row() | {"q_uid": ["c"]}]
    kit.write_json(tmp_path / "questions.json", rows)
    kit.write_json(tmp_path / "subset_answers.json", {"a": 2})
    benchmark = read_benchmark("egoschema", tmp_path / "questions.json")
    assert [(item.item_id, item.truth) for item in benchmark.samples] == [("a", Target(2))]
    assert [where for where, _ in problems(benchmark)] == ["row 3"]
