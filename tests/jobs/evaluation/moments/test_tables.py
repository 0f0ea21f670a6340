"""Tables and lines of a run: a row for each system, and what was left out or is missing said first."""

from __future__ import annotations

import json
from dataclasses import replace

from kinodex.jobs.eval.moments import Case, Cases, Result, Standing
from kinodex.jobs.eval.samples import MissingVideo, MomentQuery, Problem
from kinodex.jobs.eval.score import estimate
from kinodex.jobs.eval.tables import NOTHING, as_json, ground_tables, moment_facts, search_tables

HALF = estimate([0.0, 1.0, 0.0, 1.0, 0.0, 1.0], ["a", "b", "c", "a", "b", "c"], 0.0, 1.0)


def case(video_id: str | None, *, absent: bool) -> Case:
    return Case("1", MomentQuery("a boat", None, None), video_id, (), (), absent, "", "a")


def standing(**plain: float | None) -> Standing:
    figures = {"moment R@1": HALF, "video R@1": HALF}
    return Standing("frames", 6, figures, {name.replace("_", " "): value for name, value in plain.items()}, (), 0)


def test_moments_and_videos_have_a_table_each_and_each_category_one() -> None:
    moments, videos, boats = search_tables([standing()], {"boats": [standing()], "none": []})
    assert (moments.title, moments.heads) == ("Moments", ("system", "searches", "R@1"))
    assert (videos.title, videos.heads, boats.title) == ("Videos", ("system", "searches", "R@1"), "Moments: boats")
    assert moments.rows[0][:2] == ("frames", "6")
    assert moments.rows[0][2].startswith("0.500")


def test_figures_without_an_error_and_those_that_are_not_there() -> None:
    (table,) = ground_tables([standing(AUROC=0.75, balanced_accuracy=None)], {})
    assert table.heads[-2:] == ("AUROC", "balanced accuracy")
    assert table.rows[0][-2:] == ("0.750", NOTHING)


def test_lines_say_what_was_searched_left_out_and_missing() -> None:
    missing = tuple(MissingVideo(f"lost-{number}", "no such video", 1) for number in range(14))
    cases = Cases((case(None, absent=True), case("v", absent=False)), missing, {"moments not published": 3})
    defects = [Problem(f"line {number}", "no text") for number in range(1, 5)]
    lines = moment_facts("Own", cases, defects, "results.jsonl")
    assert lines[0] == (
        "Own: 2 searches, 1 of what is there and 1 of what is nowhere; 1 of the whole library, 1 of one video"
    )
    assert lines[1:3] == [
        "4 defects in the file of the benchmark: line 1: no text; line 2: no text; line 3: no text; and 1 more",
        "left out: 3 (moments not published)",
    ]
    assert lines[3].startswith("not in the library: 14 videos, whose moments count as missed: lost-0, ")
    assert lines[3].endswith("lost-11 and 2 more")
    assert lines[4] == "results in results.jsonl"
    made = json.loads(json.dumps(as_json([standing()], {}, cases, defects)))
    assert made["defects"][3] == {"where": "line 4", "what": "no text"}
    assert (made["searches"], made["left_out"], len(made["missing_videos"])) == (2, {"moments not published": 3}, 14)


def test_a_name_that_several_videos_have_is_not_said_to_be_missing() -> None:
    missing = (MissingVideo("a", "2 videos of the library have the name a: x/a.mp4, y/a.mp4", 1),)
    lines = moment_facts("Own", Cases((case("v", absent=False),), missing, {}, {"a"}), [], "")
    assert lines[1:] == ["not searched: 2 videos of the library have the name a: x/a.mp4, y/a.mp4"]


def test_searches_that_failed_have_a_column_and_a_line_with_the_first_reason() -> None:
    (table,) = ground_tables([standing(), replace(standing(), system="agent:eea", errors=2)], {})
    assert table.heads[:3] == ("system", "searches", "failed")
    assert [row[:3] for row in table.rows] == [("frames", "6", "0"), ("agent:eea", "6", "2")]
    results = [
        Result(name, "agent:eea", (), False, error=error) for name, error in (("1", ""), ("2", "no"), ("3", "x"))
    ]
    (_, line) = moment_facts("Own", Cases((case("v", absent=False),), (), {}), (), "", results)
    assert line == (
        "agent:eea failed in 2 searches, which count as wrong (--retry-errors searches again); the first, 2: no"
    )
