"""Video-MME as published."""

from __future__ import annotations

from pathlib import Path

from kinodex.jobs.eval.samples import Target
from tests.support.libraries import benchmark_files as kit
from tests.support.libraries.benchmark_files import only, problems, read


def test_video_mme(tmp_path: Path) -> None:
    item = only(tmp_path, "video-mme")
    assert item.question.options == tuple(f"{choice}." for choice in kit.CHOICES[:4])
    assert (item.item_id, item.video, item.truth) == ("001-1", "fFj-1_x", Target(3))
    assert item.groups == {
        "duration": ("long",),
        "domain": ("Knowledge",),
        "sub_category": ("Law",),
        "task_type": ("Counting Problem",),
    }


def test_wrong_rows_of_video_mme(tmp_path: Path) -> None:
    wrong = [
        kit.video_mme_row("1", answer="E"),
        kit.video_mme_row("2", duration="endless"),
        kit.video_mme_row("3", options=["A. x", "C. y"], answer="A"),
        kit.video_mme_row("4", question=None),
    ]
    benchmark = read(tmp_path, "video-mme", *wrong, kit.video_mme_row("5"))
    assert [item.item_id for item in benchmark.samples] == ["5"]
    assert problems(benchmark) == [
        ("row 1", "answer: got E; there are 4 options"),
        ("row 2", "duration: Input should be 'short', 'medium' or 'long', got 'endless'"),
        ("row 3", "options: got 'A. x | C. y'; each begins with its letter, from A. on"),
        ("row 4", "question: Input should be a valid string, got 'None'"),
    ]
