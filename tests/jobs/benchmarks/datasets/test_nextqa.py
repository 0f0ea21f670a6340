"""NExT-QA and IntentQA as published."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from kinodex.jobs.eval.benchmarks import read_benchmark
from kinodex.jobs.eval.samples import Target
from tests.support.libraries import benchmark_files as kit
from tests.support.libraries.benchmark_files import only


@pytest.mark.parametrize(
    ("kind", "official", "group"),
    [("CW", "CW", "C"), ("CH", "CH", "C"), ("TP", "TN", "T"), ("TN", "TN", "T"), ("TC", "TC", "T"), ("DO", "DO", "D")],
)
def test_nextqa_counts_previous_with_next(kind: str, official: str, group: str, tmp_path: Path) -> None:
    item = only(tmp_path, "nextqa", type=kind)
    assert item.groups == {"type": (kind,), "official_type": (official,), "C/T/D": (group,)}
    assert (item.item_id, item.video, item.truth) == ("111_0", "111", Target(2))
    assert item.question.options == kit.CHOICES


def test_intentqa(tmp_path: Path) -> None:
    item = only(tmp_path, "intentqa", type="TP")
    assert item.groups == {"type": ("TP",), "official_type": ("TP&TN",)}
    assert (item.item_id, item.video, item.truth) == ("111_0", "111", Target(2))


def test_the_real_nextqa_validation_set(benchmarks: Path) -> None:
    read = read_benchmark("nextqa", benchmarks / "nextqa")
    types = Counter(item.groups["type"][0] for item in read.samples)
    assert types == {"CW": 1924, "CH": 683, "TN": 895, "TC": 663, "TP": 54, "DL": 295, "DC": 177, "DO": 305}
    assert len({item.video for item in read.samples}) == 570
    assert [each.where for each in read.problems] == ["line 626", "line 3572", "line 3846"]
