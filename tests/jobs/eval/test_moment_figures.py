"""Figures of searches and ranges: by hand, as TREC and scikit-learn have them, and as tables."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import pytrec_eval

from kinodex.jobs.eval.items import MomentQuery, Problem
from kinodex.jobs.eval.moments.cases import Case, Cases, Found
from kinodex.jobs.eval.moments.ranges import auroc, best_iou, iou
from kinodex.jobs.eval.moments.ranked_lists import (
    average_precision,
    moment_gains,
    ndcg_at,
    recall_at,
    video_gains,
    video_worths,
)
from kinodex.jobs.eval.moments.results import Result
from kinodex.jobs.eval.moments.standings import Standing, ground_standings, search_standings
from kinodex.jobs.eval.moments.tables import as_json, ground_tables, moment_facts, search_tables
from kinodex.jobs.eval.scoring.estimates import estimate
from kinodex.jobs.eval.video_names import MissingVideo
from tests.support.late import late

metrics = late("sklearn.metrics")

# Worths of ranked moments: each true range counts once, and a video by its best.


TRUE = (("a", 0.0, 10.0), ("a", 20.0, 30.0), ("b", 5.0, 6.0))
GRADES = (1.0, 3.0, 2.0)


def test_a_result_is_right_if_its_middle_lies_in_a_true_range() -> None:
    found = [("a", 9.0, 12.0), ("a", 4.0, 6.0), ("b", 5.0, 5.0), ("c", 0.0, 10.0)]
    assert moment_gains(found, TRUE, GRADES) == [0.0, 1.0, 2.0, 0.0]


def test_a_video_ranks_by_its_first_result_and_is_worth_its_best_range() -> None:
    found = [("c", 0.0, 1.0), ("a", 99.0, 99.0), ("c", 4.0, 5.0), ("b", 5.0, 6.0)]
    assert video_worths(TRUE, GRADES) == {"a": 3.0, "b": 2.0}
    assert video_gains(found, TRUE, GRADES) == [0.0, 3.0, 2.0]


# Figures of ranked lists: by hand, and equal to those of TREC's own program and of scikit-learn.


def test_equal_to_trec_eval_on_random_lists_with_grades_and_with_some_not_found() -> None:
    chance = np.random.default_rng(17)
    for _ in range(50):
        grades = chance.choice([0, 0, 0, 1, 2, 3], 30)
        grades[0] = 1  # something is relevant
        found = chance.permutation(30)[: int(chance.integers(1, 31))]
        run = {"q": {f"d{at}": float(-rank) for rank, at in enumerate(found)}}
        truth = {"q": {f"d{at}": int(grade) for at, grade in enumerate(grades)}}
        trec = pytrec_eval.RelevanceEvaluator(truth, {"map", "ndcg_cut.10", "success.1,5,10"}).evaluate(run)["q"]
        gains, ideal = [float(grades[at]) for at in found], [float(grade) for grade in grades if grade > 0]
        assert average_precision(gains, ideal) == pytest.approx(trec["map"])
        assert ndcg_at(gains, ideal, 10) == pytest.approx(trec["ndcg_cut_10"])
        assert [recall_at(gains, k) for k in (1, 5, 10)] == [trec[f"success_{k}"] for k in (1, 5, 10)]


# IoU of ranges by hand, and AUROC as scikit-learn has it.


def test_iou_by_hand() -> None:
    assert iou(("v", 0, 10), ("v", 5, 20)) == pytest.approx(5 / 20)
    assert iou(("v", 0, 10), ("v", 0, 10)) == 1.0
    assert iou(("v", 2, 4), ("v", 0, 10)) == pytest.approx(0.2)
    assert iou(("v", 0, 10), ("v", 10, 20)) == 0.0
    assert iou(("v", 0, 10), ("w", 0, 10)) == 0.0
    assert iou(("v", 3, 3), ("v", 3, 3)) == 0.0


def test_auroc_is_that_of_scikit_learn_with_ties(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KMP_DUPLICATE_LIB_OK", "True")  # scikit-learn sets both when it is imported
    monkeypatch.setenv("KMP_INIT_AT_FORK", "FALSE")
    chance = np.random.default_rng(5)
    for _ in range(20):
        present, absent = chance.integers(0, 6, 12).astype(float), chance.integers(-2, 4, 9).astype(float)
        known = metrics.roc_auc_score([1] * 12 + [0] * 9, [*present, *absent])
        assert auroc(present.tolist(), absent.tolist()) == pytest.approx(known)
    assert auroc([], [1.0]) is None


# Reports against cases worked out by hand.


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


# Tables and lines of a run: a row for each system, and what was left out or is missing said first.


HALF = estimate([0.0, 1.0, 0.0, 1.0, 0.0, 1.0], ["a", "b", "c", "a", "b", "c"], 0.0, 1.0)


def case_of(video_id: str | None, *, absent: bool) -> Case:
    return Case("1", MomentQuery("a boat", None, None), video_id, (), (), absent, "", "a")


def standing(**plain: float | None) -> Standing:
    figures = {"moment R@1": HALF, "video R@1": HALF}
    return Standing("frames", 6, figures, {name.replace("_", " "): value for name, value in plain.items()}, (), 0)


def test_lines_say_what_was_searched_left_out_and_missing() -> None:
    missing = tuple(MissingVideo(f"lost-{number}", "no such video", 1) for number in range(14))
    cases = Cases((case_of(None, absent=True), case_of("v", absent=False)), missing, {"moments not published": 3})
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


def test_ranges_leave_out_their_end_and_hold_their_beginning() -> None:
    assert moment_gains([("a", 10.0, 10.0), ("a", 20.0, 20.0)], TRUE, GRADES) == [0.0, 3.0]


def test_a_second_find_of_a_range_is_passed_over() -> None:
    found = [("a", 1.0, 1.0), ("a", 2.0, 2.0), ("a", 25.0, 25.0), ("a", 26.0, 26.0), ("a", 15.0, 15.0)]
    assert moment_gains(found, TRUE, GRADES) == [1.0, 3.0, 0.0]


def test_of_ranges_that_overlap_each_is_found_by_a_result_of_its_own() -> None:
    true = (("a", 0.0, 10.0), ("a", 5.0, 15.0))
    assert moment_gains([("a", 7.0, 7.0), ("a", 8.0, 8.0), ("a", 9.0, 9.0)], true, (1.0, 2.0)) == [1.0, 2.0]


def test_nothing_found_or_nothing_to_find_is_worth_nothing() -> None:
    assert (average_precision([], [1]), ndcg_at([], [1], 10), recall_at([], 5)) == (0.0, 0.0, 0.0)
    assert (average_precision([0, 0], []), ndcg_at([0, 0], [], 10)) == (0.0, 0.0)


def test_the_true_range_that_fits_best_counts() -> None:
    assert best_iou(("v", 0, 10), [("v", 50, 60), ("v", 5, 10), ("w", 0, 10)]) == pytest.approx(0.5)
    assert best_iou(None, [("v", 0, 1)]) == 0.0
    assert best_iou(("v", 0, 10), []) == 0.0


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


def test_moments_and_videos_have_a_table_each_and_each_category_one() -> None:
    moments, videos, boats = search_tables([standing()], {"boats": [standing()], "none": []})
    assert (moments.title, moments.heads) == ("Moments", ("system", "searches", "R@1"))
    assert (videos.title, videos.heads, boats.title) == ("Videos", ("system", "searches", "R@1"), "Moments: boats")
    assert moments.rows[0][:2] == ("frames", "6")
    assert moments.rows[0][2].startswith("0.500")


def test_searches_that_failed_have_a_column_and_a_line_with_the_first_reason() -> None:
    (table,) = ground_tables([standing(), replace(standing(), system="agent:eea", errors=2)], {})
    assert table.heads[:3] == ("system", "searches", "failed")
    assert [row[:3] for row in table.rows] == [("frames", "6", "0"), ("agent:eea", "6", "2")]
    results = [
        Result(name, "agent:eea", (), False, error=error) for name, error in (("1", ""), ("2", "no"), ("3", "x"))
    ]
    (_, line) = moment_facts("Own", Cases((case_of("v", absent=False),), (), {}), (), "", results)
    assert line == (
        "agent:eea failed in 2 searches, which count as wrong (--retry-errors searches again); the first, 2: no"
    )
