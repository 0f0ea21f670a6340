"""MINERVA as published."""

from __future__ import annotations

from pathlib import Path

from kinodex.jobs.eval.samples import Target
from tests.support.libraries import benchmark_files as kit
from tests.support.libraries.benchmark_files import only, problems, read


def test_minerva(tmp_path: Path) -> None:
    item = only(tmp_path, "minerva")
    assert (item.item_id, item.video, item.truth) == ("a:1", "fFj-1_x", Target(3))
    assert item.question.options == kit.CHOICES
    assert item.groups == {
        "skill": ("Temporal Reasoning", "Counting"),
        "split": ("Sports",),
        "category": ("Football",),
    }


def test_the_reasoning_trace_goes_nowhere(tmp_path: Path) -> None:
    assert "PLANTED" not in repr(only(tmp_path, "minerva", reasoning="At 01:05 the PLANTED lamp."))


def test_videos_are_named_by_id_or_address_and_skills_by_either_name(tmp_path: Path) -> None:
    row = kit.minerva_row(video_id="https://www.youtube.com/watch?v=fFj-1_x&t=3")
    row["question type"] = row.pop("question_type")
    (item,) = read(tmp_path, "minerva", row).samples
    assert (item.video, item.groups["skill"]) == ("fFj-1_x", ("Temporal Reasoning", "Counting"))
    assert only(tmp_path, "minerva", video_id="https://youtu.be/fFj-1_x").video == "fFj-1_x"


def test_wrong_rows_of_minerva(tmp_path: Path) -> None:
    benchmark = read(
        tmp_path,
        "minerva",
        kit.minerva_row("1", answer_id=5),
        kit.minerva_row("2", answer_choice_4=" "),
        kit.minerva_row("3", answer="another lamp"),
    )
    assert [item.item_id for item in benchmark.samples] == ["3"]
    (first, _), (second, blank), (third, other) = problems(benchmark)
    assert (first, second, third) == ("row 1", "row 2", "row 3")
    assert "without words" in blank
    assert "not the text of choice 3" in other
