"""Video-MME-v2 as published."""

from __future__ import annotations

from pathlib import Path

from kinodex.jobs.eval.samples import Target
from tests.support.libraries import benchmark_files as kit
from tests.support.libraries.benchmark_files import only, problems, read


def test_video_mme_v2(tmp_path: Path) -> None:
    item = only(tmp_path, "video-mme-v2")
    assert item.question.options == tuple(f"{choice}." for choice in kit.CHOICES)
    assert (item.item_id, item.video, item.truth) == ("001-1", "001", Target(3))
    assert item.groups == {
        "level": ("2",),
        "group_type": ("logic",),
        "group_structure": ("[1, [2, 3], 4]",),
        "second_head": ("Order",),
        "third_head": ("Order of events",),
    }


def test_options_are_lines_or_a_list(tmp_path: Path) -> None:
    spread = "A. a kite\nwith a tail\nB) a drum"
    assert only(tmp_path, "video-mme-v2", options=spread, answer="B").question.options == (
        "a kite\nwith a tail",
        "a drum",
    )
    listed = ["A. a kite", "B. a drum"]
    assert only(tmp_path, "video-mme-v2", options=listed, answer="B").question.options == ("a kite", "a drum")
    assert only(tmp_path, "video-mme-v2", options=["a kite", "a drum"], answer="A").question.options[0] == "a kite"


def test_wrong_rows_of_video_mme_v2(tmp_path: Path) -> None:
    wrong = [
        kit.video_mme_v2_row("1", answer="G"),
        kit.video_mme_v2_row("2", group_type="fun"),
        kit.video_mme_v2_row("3", options="a kite\nB. a drum"),
        kit.video_mme_v2_row("4", options="A. x\nC. y", answer="A"),
    ]
    benchmark = read(tmp_path, "video-mme-v2", *wrong, kit.video_mme_v2_row("5", level=None))
    assert [item.item_id for item in benchmark.samples] == ["5"]
    assert "level" not in benchmark.samples[0].groups
    texts = [what for _, what in problems(benchmark)]
    assert texts[0] == "answer: got G; there are 5 options"
    assert "group_type" in texts[1]
    assert all("begins with its letter, from A. on" in text for text in texts[2:])


def test_a_chain_of_another_structure_is_noted(tmp_path: Path) -> None:
    (sample,) = (benchmark := read(tmp_path, "video-mme-v2", kit.video_mme_v2_row(group_structure="[4,1]"))).samples
    assert sample.groups["group_structure"] == ("[4,1]",)
    assert problems(benchmark) == [("row 1", "group_structure: got [4,1]; its group is scored as [1,2,3,4]")]
