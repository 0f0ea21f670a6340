"""LongTVQA and LongTVQA+ as published."""

from __future__ import annotations

from pathlib import Path

import pytest

from kinodex.jobs.eval.benchmarks import read_benchmark
from kinodex.jobs.eval.samples import Target
from tests.support.libraries import benchmark_files as kit
from tests.support.libraries.benchmark_files import only, problems, read


@pytest.mark.parametrize("name", ["longtvqa", "longtvqa-plus"])
def test_longtvqa_asks_about_the_episode_and_hides_the_clip(name: str, tmp_path: Path) -> None:
    benchmark = read(tmp_path, name)
    (item,) = benchmark.samples
    assert benchmark.episodes
    assert (item.item_id, item.video, item.groups) == ("7", "s05e06", {"season": ("s05",)})
    assert item.truth == Target(4, evidence=((12.3, 20.11),), clip="s05e06_seg02_clip_15")
    shown = repr((item.item_id, item.video, item.question, item.groups))
    assert not any(secret in shown for secret in ("clip_15", "12.3", "label", "img_id"))


@pytest.mark.parametrize(("ts", "evidence"), [("12.3-20.11", ((12.3, 20.11),)), ([0, 5.4], ((0.0, 5.4),))])
def test_longtvqa_times(ts: object, evidence: object, tmp_path: Path) -> None:
    assert only(tmp_path, "longtvqa", ts=ts).truth.evidence == evidence


@pytest.mark.parametrize("ts", ["nan-nan", [5.0, 5.0], [1], None, [float("nan"), 3.0]])
def test_longtvqa_questions_of_no_time_are_kept_without_evidence(ts: object, tmp_path: Path) -> None:
    benchmark = read(tmp_path, "longtvqa", kit.longtvqa_row(ts=ts))
    assert benchmark.samples[0].truth.evidence == ()
    assert "kept without evidence" in problems(benchmark)[0][1]


def test_longtvqa_one_object_a_line_and_a_clip_of_another_episode(tmp_path: Path) -> None:
    path = tmp_path / "LongTVQA_val.jsonl"
    other = kit.longtvqa_row(8, episode_name="friends_s01e02", answer="a5")
    kit.write_lines(path, [kit.longtvqa_row(7, episode_name="s09e01"), other])
    benchmark = read_benchmark("longtvqa", path)
    assert [(item.item_id, item.video) for item in benchmark.samples] == [("7", "s09e01")]
    assert [where for where, _ in problems(benchmark)] == ["line 1", "line 2"]
    assert "not of episode s09e01; the question is kept" in problems(benchmark)[0][1]


def test_real_rows_of_longtvqa_plus(benchmarks: Path) -> None:
    (path,) = (benchmarks / "longtvqa").glob("*.json")
    read = read_benchmark("longtvqa-plus", path)
    assert len(read.samples) == 150
    assert all(len(item.truth.evidence) == 1 and item.truth.clip for item in read.samples)
    assert [each.where for each in read.problems] == ["file", "row 47"]
