"""Reports of runs whose answers are known, worked out by hand; official rules on rows in the published forms."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kinodex.agent.limits.ledger import Ledger
from kinodex.jobs.errors import UsageError
from kinodex.jobs.eval.comparison import compare_runs
from kinodex.jobs.eval.folder import adapter_of, read_run
from kinodex.jobs.eval.report import COSTS, EvalReport, as_json, make_report
from kinodex.jobs.eval.results import Judgement, Round
from kinodex.jobs.eval.scoring.answers import asked_digest
from kinodex.jobs.eval.scoring.groups import TITLE, score_group
from tests.support.libraries import benchmark_files as kit
from tests.support.runs.small_runs import ITEMS
from tests.support.runs.solved_runs import LIBRARY, answer, item, means, plan_of, said, seen, write_run

# Figures of runs whose answers are known, worked out by hand; official rules on rows in the published forms.


def only(plan, items, records, judgements=()):
    """The one standing of a report."""
    (standing,) = make_report(plan, items, records, judgements).standings
    return standing


def test_who_is_right_and_why_not() -> None:
    items = [item(name, video) for name, video in (("a", "v1"), ("b", "v1"), ("c", "v2"), ("d", "v2"), ("e", "v3"))]
    records = [
        answer("a"),
        answer("b", 3),
        answer("c", None),
        answer("d", None, status="invalid"),
        answer("e", None, status=None, error="ModelRejected: the server says 400"),
    ]
    standing = only(plan_of(items), items, records)
    assert (standing.accuracy.mean, standing.accuracy.questions, standing.accuracy.clusters) == (0.2, 5, 3)
    assert (standing.unanswered, standing.invalid, standing.errors) == (3, 1, 1)
    assert standing.valid is None


def test_costs_are_those_of_the_ledgers() -> None:
    items = [item("a"), item("b", "v2")]
    bills = [
        Ledger(frames=4, frame_shows=9, frames_with_kept=6, calls=3, input_tokens=100, output_tokens=20, cost=0.5),
        Ledger(frames=8, frame_shows=8, frames_with_kept=8, calls=1, input_tokens=50, output_tokens=10, seconds=2.0),
    ]
    standing = only(
        plan_of(items), items, [answer("b", ledger=bills[1], rounds=5), answer("a", ledger=bills[0], rounds=2)]
    )
    assert set(standing.costs) == set(COSTS)
    spent = {name: (each.mean, each.total) for name, each in standing.costs.items()}
    assert spent["frames"] == (6.0, 12.0)
    assert spent["frames_with_kept"] == (7.0, 14.0)
    assert spent["frame_shows"] == (8.5, 17.0)
    assert spent["rounds"] == (3.5, 7.0)
    assert spent["tokens"] == (90.0, 180.0)
    assert spent["cost"] == (0.25, 0.5)
    assert spent["seconds"] == (1.0, 2.0)
    assert standing.frames == (4, 8), "in the order of the questions, not of the answers"


def test_mmbench_video_is_scored_over_all_and_over_the_valid(tmp_path: Path) -> None:
    """A question counts in each leaf and once in each branch; without a valid score it is a 0, or left out."""
    rows = {1: ["OCR", "Counting"], 2: ["OCR", "Causal Reasoning"], 3: ["Hallucination"], 4: ["Video Topic"]}
    asked = [kit.mmbench_row(index, video=f"v{index}", dimensions=str(leaves)) for index, leaves in rows.items()]
    items = kit.read(tmp_path, "mmbench-video", *asked).items
    records = [said("1", "a kite"), said("2", "a bird"), said("3", "who knows"), said("4", None, status="invalid")]
    scores = (3, 1, None)
    verdicts = [
        Judgement("eea", record.item_id, "gpt", score, asked_digest(item, record), "")
        for item, record, score in zip(items, records, scores, strict=False)
    ]
    plan = plan_of(items, scoring="judge")
    standing = only(plan, items, records, verdicts)
    assert standing.accuracy.mean * 3 == pytest.approx((3 + 1 + 0 + 0) / 4)
    assert standing.valid is not None
    assert standing.valid.mean * 3 == pytest.approx((3 + 1) / 2)
    assert (standing.valid.questions, standing.unanswered, standing.invalid) == (2, 1, 1)
    assert {name: 3 * mean for name, mean in means(standing.groups["ability"]).items()} == pytest.approx(
        {"FP-S": 2.0, "TR": 1.0, "HL": 0.0, "CP": 0.0}, abs=1e-3
    )
    assert set(standing.valid_groups["ability"]) == {"FP-S", "TR"}
    sides = standing.groups["perception/reasoning"]
    assert {name: 3 * each.mean for name, each in sides.items()} == pytest.approx({"perception": 1.0, "reasoning": 1.0})
    assert make_report(plan, items, records, verdicts).complete


def test_pairs_are_on_the_questions_that_both_answered() -> None:
    items = [item(name, video) for name, video in (("a", "v1"), ("b", "v1"), ("c", "v2"), ("d", "v3"), ("e", "v4"))]
    records = [
        *(answer(name, option) for name, option in (("a", 0), ("b", 0), ("c", 0), ("d", 1), ("e", 0))),
        *(answer(name, option, "vca") for name, option in (("a", 0), ("b", 1), ("c", 1), ("d", 1))),
    ]
    report = make_report(plan_of(items, ("eea", "vca", "videotree")), items, records)
    (pair,) = report.pairs
    assert (pair.a, pair.b) == ("eea", "vca")
    assert (pair.both, pair.only_a, pair.only_b, pair.neither) == (1, 2, 0, 1)
    assert (pair.difference.mean, pair.difference.questions, pair.difference.clusters) == (0.5, 4, 3)
    assert (pair.p_value, pair.exact_p_value) == (None, 0.5), "of three videos there is no clustered p"
    assert (pair.difference.low, pair.difference.high, pair.difference.error) == (None, None, None), "nor an interval"
    assert [each.name for each in report.standings] == ["eea", "vca"]
    assert not report.complete


def test_a_report_is_the_same_when_read_again() -> None:
    items = [item("a", evidence=((0.0, 5.0),), groups={"kind": ("x", "y")}), item("b", "v2", duration_s=20.0)]
    records = [answer("a", evidence=(seen(0, 9),), search=(Round(0.3, 0.4, seen(9, 12), seen(0, 3)),)), answer("b", 1)]
    report = make_report(
        plan_of(items, ("eea:rounds=4",)), items, [replace(r, contender="eea:rounds=4") for r in records]
    )
    assert adapter_of(EvalReport).validate_json(as_json(report)) == report


# Answers scored against their targets.


def test_a_question_whose_answer_nobody_tells_is_asked_and_not_scored() -> None:
    items = [item("a"), item("b", "v2", option=None)]
    standing = only(plan_of(items), items, [answer("a"), answer("b", 2, ledger=Ledger(frames=8))])
    assert (standing.accuracy.mean, standing.accuracy.questions) == (1.0, 1)
    assert standing.costs["frames"].mean == 4.0
    report = make_report(plan_of(items), items, [answer("a"), answer("b", 2)])
    assert report.complete
    assert (report.asked, report.videos) == (2, 2)


def test_evidence_and_distance_are_to_the_nearest_true_range_of_the_right_video() -> None:
    items = [
        item("a", evidence=((10.0, 20.0), (100.0, 110.0))),
        item("b", "v2", evidence=((10.0, 20.0),)),
        item("c", "v3"),
    ]
    searched = (
        Round(0.9, 0.2, seen(0, 5), seen(105, 130)),
        Round(0.4, None, seen(130, 150), seen(40, 90)),
        Round(0.1, 0.0, None, seen(0, 1)),
    )
    records = [
        answer("a", evidence=(seen(20, 30), seen(109, 140)), search=searched),
        answer("b", evidence=(seen(10, 20),), search=(Round(None, None, seen(0, 5), None),)),
        answer("c", evidence=(seen(10, 20, "v3"),)),
    ]
    standing = only(plan_of(items), items, records)
    assert standing.evidence is not None
    assert (standing.evidence.mean, standing.evidence.questions) == (0.5, 2), "b's evidence is of another video"
    assert standing.distance == {"chosen": (5.0, 20.0), "best": (0.0, 10.0)}, "the last round chose nothing"
    assert standing.entropy == {"intrinsic": (0.9, 0.4, 0.1), "fused": (0.2, 0.0)}
    assert standing.grounding is None


def test_grounding_is_whether_the_true_clip_was_visited() -> None:
    items = [item(name, "episode", clip=LIBRARY + "clip1", evidence=((0.0, 5.0),)) for name in "abc"]
    items[2] = replace(items[2], truth=replace(items[2].truth, clip=LIBRARY + "clip9"))
    clips = (LIBRARY + "clip1", LIBRARY + "clip2")
    records = [
        answer("a", visited=(seen(0, 9, "clip2"), seen(0, 9, "clip1")), evidence=(seen(0, 9, "clip2"),)),
        answer("b", visited=(seen(0, 9, "clip2"),), evidence=(seen(1, 2, "clip1"),)),
        answer("c", visited=(seen(0, 9, "clip2"),)),
    ]
    standing = only(plan_of(items, items=dict.fromkeys("abc", clips)), items, records)
    assert standing.grounding is not None and standing.evidence is not None
    assert (standing.grounding.mean, standing.grounding.questions) == (0.5, 2), "the library has no clip9"
    assert standing.evidence.mean == 0.5


def test_an_answer_of_another_run_is_refused() -> None:
    items = [item("a")]
    for strange in (answer("b"), answer("a", contender="vca")):
        with pytest.raises(UsageError, match="no such contender or question"):
            make_report(plan_of(items), items, [strange])


# Scores of groups of four, worked out by hand from the published worths.


@pytest.mark.parametrize(
    ("right", "worth"), [("0000", 0), ("0100", 1 / 16), ("1010", 4 / 16), ("0111", 9 / 16), ("1111", 1)]
)
def test_a_group_about_one_ability_is_worth_the_square_of_its_share(right: str, worth: float) -> None:
    assert score_group([mark == "1" for mark in right], "relevance", "") == worth


@pytest.mark.parametrize(
    ("structure", "right", "worth"),
    [
        ("[1,2,3,4]", "0111", 0),
        ("[1,2,3,4]", "1011", 1 / 16),
        ("[1,2,3,4]", "1110", 9 / 16),
        ("[1,[2,3],4]", "1000", 1 / 12),
        ("[1,[2,3],4]", "1011", 4 / 12),
        ("[1,[2,3],4]", "1101", 4 / 12),
        ("[1,[2,3],4]", "1110", 7 / 12),
        ("[[1,2],3,4]", "0111", 1 / 10),
        ("[[1,2],3,4]", "1000", 1 / 10),
        ("[[1,2],3,4]", "1101", 2 / 10),
        ("[[1,2],3,4]", "1111", 1),
    ],
)
def test_a_chain_counts_up_to_its_first_wrong_answer(structure: str, right: str, worth: float) -> None:
    assert score_group([mark == "1" for mark in right], "logic", structure) == pytest.approx(worth)


def test_the_report_has_the_mean_over_groups_that_were_asked_whole() -> None:
    groups = {
        "v1": ("relevance", "1", ""),
        "v2": ("logic", "3", "[1, [2, 3], 4]"),
        "v3": ("logic", "3", "[1, 2, 3, 4]"),
    }
    items = []
    for video, (kind, level, structure) in groups.items():
        known = {"group_type": (kind,), "level": (level,), "group_structure": (structure,)}
        items += [replace(item(f"{video}-{place}", video), groups=known) for place in range(1, 5)]
    items = items[:-1]  # the last group is asked in part
    right = items[0].truth.option
    assert right is not None
    wrong = {"v1-4", "v2-2", "v2-4"}
    records = [answer(each.item_id, right + 1 if each.item_id in wrong else right) for each in items]
    (standing,) = make_report(plan_of(items), items, records).standings
    found = standing.groups[TITLE]
    one, other = 9 / 16, 4 / 12
    means = {"all": (one + other) / 2, "relevance": one, "level 1": one, "logic": other, "level 3": other}
    assert {name: each.mean for name, each in found.items()} == pytest.approx(means)
    counts = {"all": 2, "relevance": 1, "level 1": 1, "logic": 1, "level 3": 1}
    assert {name: each.questions for name, each in found.items()} == counts


# `kinodex eval report` and `kinodex eval compare`, as a user has them.


def test_only_questions_that_are_the_same_count(tmp_path: Path) -> None:
    records = [answer(each.item_id) for each in ITEMS]
    one = read_run(write_run(tmp_path / "one", ITEMS, records))
    changed = [ITEMS[1], replace(ITEMS[2], truth=replace(ITEMS[2].truth, option=3)), item("z")]
    other = read_run(write_run(tmp_path / "other", changed, [answer("b", 1), answer("c", 3), answer("z")]))
    found = compare_runs(one, other)
    assert (found.shared, found.changed, found.only_one, found.only_other) == (1, 1, 2, 1)
    (versus,) = found.versus
    assert (versus.pair.difference.mean, versus.pair.difference.questions) == (1.0, 1)
    assert (versus.a.accuracy.mean, versus.b.accuracy.mean) == (1.0, 0.0)
