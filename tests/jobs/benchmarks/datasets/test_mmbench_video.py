"""MMBench-Video as published."""

from __future__ import annotations

from pathlib import Path

import pytest

from kinodex.jobs.eval.samples import Target
from tests.support.libraries import benchmark_files as kit
from tests.support.libraries.benchmark_files import problems, read


def test_mmbench_video(tmp_path: Path) -> None:
    benchmark = read(tmp_path, "mmbench-video")
    (item,) = benchmark.samples
    assert benchmark.scoring == "judge"
    assert (item.item_id, item.video, item.truth) == ("0", "v1_processed", Target(text="A ladder."))
    assert item.question.options == ()
    assert item.groups == {
        "dimension": ("OCR", "Counting", "Natural Relation"),
        "ability": ("FP-S", "RR"),
        "perception/reasoning": ("perception", "reasoning"),
    }


@pytest.mark.parametrize("dimensions", ["OCR", "['Juggling']", "[]", "__import__('os')"])
def test_mmbench_video_rows_of_no_known_ability(dimensions: str, tmp_path: Path) -> None:
    wrong = kit.mmbench_row(1, dimensions=dimensions)
    benchmark = read(tmp_path, "mmbench-video", kit.mmbench_row(0), wrong)
    assert len(benchmark.samples) == 1
    ((where, what),) = problems(benchmark)
    assert where == "line 3"
    assert what.startswith("dimensions: got ")
