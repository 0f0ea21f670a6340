"""`kinodex eval report` and `kinodex eval compare`, as a user has them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from kinodex.agent.limits import Budget
from kinodex.jobs.errors import UsageError
from kinodex.jobs.eval.folder import read_run
from kinodex.jobs.eval.report import compare_runs
from kinodex.jobs.eval.systems import Judgement, System
from tests.support.command import Kinodex
from tests.support.runs.small_runs import ITEMS, rows_of, small_run
from tests.support.runs.solved_runs import answer, item, said, spoken, write_run


def test_two_runs_are_held_against_each_other_by_name(kinodex: Kinodex, tmp_path: Path) -> None:
    one = small_run(tmp_path / "one", (True, True, True, False))
    other = small_run(tmp_path / "other", (True, False, False, False), budget=Budget(frames=8), models={"default": "m"})
    ran = kinodex("eval", "compare", one, other, "--markdown")
    assert ran.code == 0
    heads, row = rows_of(ran.out, "on the questions that both answered")
    found = dict(zip(heads, row, strict=True))
    assert (found["a"], found["b"], found["questions"]) == ("eea", "eea", "4")
    assert found["a less b [95 %]"] == "+0.500", "of so few videos there is no clustered interval"
    assert (found["only a"], found["only b"], found["frames"]) == ("2", "0", "10.0 / 10.0")
    assert "differs: models: default builtin / default m" in ran.out
    assert "differs: budget: none / frames 8" in ran.out
    assert "library" not in ran.out
    told = json.loads(kinodex("eval", "compare", one, other, "--json").out)
    assert told["versus"][0]["pair"]["difference"]["mean"] == 0.5


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


def test_names_that_differ_are_held_each_against_each(tmp_path: Path) -> None:
    runs = []
    for folder, names in (("one", ("eea", "vca")), ("other", ("videotree",)), ("third", ("vca", "videotree"))):
        records = [answer(each.item_id, contender=name) for each in ITEMS for name in names]
        runs.append(read_run(write_run(tmp_path / folder, ITEMS, records, names=names)))
    one, other, third = runs
    assert [(each.pair.a, each.pair.b) for each in compare_runs(one, other).versus] == [
        ("eea", "videotree"),
        ("vca", "videotree"),
    ]
    by_name = compare_runs(one, third)
    assert [(each.pair.a, each.pair.b) for each in by_name.versus] == [("vca", "vca")]
    assert by_name.unpaired == ("eea", "videotree")
    assert len(compare_runs(one, third, every=True).versus) == 4


def test_settings_and_judges_that_differ_are_told(tmp_path: Path) -> None:
    items = [spoken("a"), spoken("b", "v2")]
    runs = []
    for judge, rounds in (("gpt-4o", 3), ("qwen", 5)):
        entered = (System("eea", "eea", {"rounds": rounds}),)
        verdicts = [Judgement("eea", each.item_id, judge, 3) for each in items]
        records = [said(each.item_id, "a kite") for each in items]
        folder = write_run(tmp_path / judge, items, records, verdicts, scoring="judge", contenders=entered)
        runs.append(read_run(folder))
    told = {each.what: (each.one, each.other) for each in compare_runs(*runs).differences}
    assert told == {"judge": ("gpt-4o", "qwen"), "settings of eea": ("rounds 3", "rounds 5")}


def test_runs_that_share_nothing_are_refused(tmp_path: Path) -> None:
    one = read_run(small_run(tmp_path / "one"))
    other = read_run(small_run(tmp_path / "other", benchmark="lvbench"))
    with pytest.raises(UsageError, match="two runs of one benchmark"):
        compare_runs(one, other)
    strange = read_run(write_run(tmp_path / "strange", [item("z")], [answer("z")]))
    with pytest.raises(UsageError, match="no question in common"):
        compare_runs(one, strange)
