"""Scores of groups of four, worked out by hand from the published worths."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kinodex.jobs.eval.report import make_report
from kinodex.jobs.eval.score import TITLE, score_group
from tests.support.runs.solved_runs import answer, item, plan_of


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


def test_other_benchmarks_have_no_such_breakdown() -> None:
    items = [item("a"), item("b")]
    (standing,) = make_report(plan_of(items), items, [answer("a"), answer("b")]).standings
    assert TITLE not in standing.groups


def test_the_questions_of_a_chain_stand_in_the_order_of_their_numbers() -> None:
    known = {"group_type": ("logic",), "group_structure": ("[1,2,3,4]",)}
    items = [replace(item(f"v-{number}"), groups=known) for number in (8, 9, 10, 11)]
    records = [answer(each.item_id, 1 if each.item_id == "v-10" else 0) for each in items]
    (standing,) = make_report(plan_of(items), items, records).standings
    assert standing.groups[TITLE]["all"].mean == 4 / 16, "two right ones before the first wrong one"
