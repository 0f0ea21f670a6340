"""Questions of the sketch world."""

from __future__ import annotations

from pathlib import Path

from kinodex.jobs.eval.samples import Target
from tests.support.libraries import benchmark_files as kit
from tests.support.libraries.benchmark_files import problems, read


def test_a_story_has_what_a_question_needs_and_all_its_ranges(tmp_path: Path) -> None:
    ranges = [[3.5, 8.0], [20.0, 22.0]]
    benchmark = read(tmp_path, "sketch", kit.sketch_row("1", needs="both", ranges=ranges, evidence=ranges[0]))
    (item,) = benchmark.samples
    assert item.groups == {"kind": ("first",), "needs": ("both",)}
    assert item.truth == Target(1, evidence=((3.5, 8.0), (20.0, 22.0)))


def test_sketch(tmp_path: Path) -> None:
    rows = [
        kit.sketch_row("1"),
        kit.sketch_row("2", answer=3),
        kit.sketch_row("3", evidence=[8.0, 3.5]),
        kit.sketch_row("4", options=["a cat", " "]),
    ]
    benchmark = read(tmp_path, "sketch", *rows)
    (item,) = benchmark.samples
    assert (item.item_id, item.video, item.groups) == ("1", "film-01.mp4", {"kind": ("first",)})
    assert item.truth == Target(1, evidence=((3.5, 8.0),))
    assert problems(benchmark) == [
        ("line 2", "answer: got 3; there are 3 options, counted from 0"),
        ("line 3", "evidence: got 8.0 to 3.5; it is a start and a later end in seconds"),
        ("line 4", "an option is empty; every option needs some text"),
    ]
