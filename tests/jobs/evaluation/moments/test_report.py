"""Reports against cases worked out by hand."""

from __future__ import annotations

import pytest

from kinodex.jobs.eval.moments import Case, Found, Result, by_category, ground_standings, search_standings
from kinodex.jobs.eval.samples import MomentQuery
from kinodex.jobs.eval.score import estimate


def case(name: str, *relevant: Found, video_id: str | None = None, category: str = "") -> Case:
    query = MomentQuery(name, None, None)
    cluster = relevant[0][0] if relevant else f"none/{name}"
    return Case(name, query, video_id, relevant, (1.0,) * len(relevant), not relevant, category, cluster)


CASES = (
    case("1", ("a", 0.0, 10.0), category="one"),
    case("2", ("a", 20.0, 30.0), ("b", 0.0, 5.0), category="two"),
    case("3", ("b", 5.0, 9.0), video_id="b", category="one"),
    case("4", category="none"),
)


def test_searches_are_scored_by_moment_and_by_video_and_what_is_nowhere_is_left_out() -> None:
    results = [
        Result("1", "frames", (("a", 50.0, 50.0), ("a", 5.0, 5.0))),
        Result("2", "frames", (("b", 1.0, 1.0), ("c", 0.0, 0.0), ("a", 25.0, 25.0))),
        Result("3", "frames", ()),
        Result("4", "frames", (("a", 0.0, 0.0),)),
    ]
    (standing,) = search_standings(CASES, results)
    means = {name: each.mean for name, each in standing.figures.items()}
    assert standing.searches == 3
    assert means["moment R@1"] == pytest.approx(1 / 3)
    assert means["moment R@5"] == pytest.approx(2 / 3)
    assert means["moment mAP"] == pytest.approx((1 / 2 + (1 + 2 / 3) / 2 + 0) / 3)
    assert means["video R@1"] == 1.0  # case 3 names its video, and says nothing of videos
    assert standing.figures["video R@1"].questions == 2
    assert means["video mAP"] == pytest.approx((1 + (1 + 2 / 3) / 2) / 2)
    assert standing.failures == ("3",)
    assert standing.figures["moment R@1"] == estimate([0.0, 1.0, 0.0], ["a", "a", "b"], 0.0, 1.0)


def test_ranges_are_scored_by_iou_and_verdicts_by_misses_and_false_alarms() -> None:
    results = [
        Result("1", "ground", (("a", 0.0, 20.0),), True, 5.0),  # IoU 0.5
        Result("2", "ground", (("b", 0.0, 4.0),), False, 2.0),  # IoU 0.8, of the better of two
        Result("3", "ground", (), False, 0.0),
        Result("4", "ground", (("a", 1.0, 2.0),), True, 3.0, "broke off"),
    ]
    (standing,) = ground_standings(CASES, results)
    means = {name: each.mean for name, each in standing.figures.items()}
    assert [means[f"R@1 IoU {least:g}"] for least in (0.3, 0.5, 0.7)] == pytest.approx([2 / 3, 2 / 3, 1 / 3])
    assert means["mIoU"] == pytest.approx((0.5 + 0.8) / 3)
    assert [means["misses"], means["false alarms"]] == pytest.approx([2 / 3, 1.0])
    assert standing.plain["balanced accuracy"] == pytest.approx(1 - (2 / 3 + 1) / 2)
    assert standing.plain["AUROC"] == pytest.approx(1 / 3)
    assert (standing.failures, standing.errors, standing.searches) == (("3",), 1, 4)


def test_a_search_that_failed_is_wrong_whether_the_event_is_there_or_not() -> None:
    failed = [Result(each.case_id, "agent:eea", (), False, error="refused") for each in CASES]
    (standing,) = ground_standings(CASES, failed)
    assert {standing.figures[name].mean for name in ("misses", "false alarms")} == {1.0}
    assert standing.plain["balanced accuracy"] == 0.0


def test_a_system_without_verdicts_and_a_benchmark_without_absent_events_have_no_such_figures() -> None:
    (plain,) = ground_standings(CASES[:1], [Result("1", "frames", (("a", 0.0, 10.0),))])
    assert "misses" not in plain.figures
    assert plain.plain == {"AUROC": None}
    (there,) = ground_standings(CASES[:1], [Result("1", "ground", (("a", 0.0, 10.0),), True, 9.0)])
    assert there.plain == {"balanced accuracy": None, "AUROC": None}


def test_categories_are_scored_apart() -> None:
    results = [Result(each.case_id, "frames", each.relevant) for each in CASES]
    parts = by_category(CASES, results, search_standings)
    assert {name: [each.searches for each in part] for name, part in parts.items()} == {
        "one": [2],
        "two": [1],
        "none": [],
    }
    assert by_category(CASES[:1], results, search_standings) == {}
