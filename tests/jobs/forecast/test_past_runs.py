"""Past runs as the basis of a forecast: those that asked alike alone, and no neighbour's damage ends it."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kinodex.agent.limits import Budget, Ledger
from kinodex.agent.protocol import AnswerRules
from kinodex.jobs.eval.folder import ANSWERS, PLAN
from kinodex.jobs.forecast import ALIKE, past_ledgers
from tests.support.runs.solved_runs import answer, item, plan_of, write_run

ITEMS = [item(f"q{n}") for n in range(6)]
SETTINGS: dict[str, Any] = {"prices": {"default": "input 1, output 0"}, "states": {"library:v1": "a"}}
PLANNED = plan_of(ITEMS, **SETTINGS)
OTHER: dict[str, Any] = {
    "benchmark": "another",
    "library": "/another",
    "space": "another",
    "models": {"default": "another"},
    "contents": {"local:x": "1"},
    "prices": {},
    "budget": Budget(rounds=3),
    "rules": AnswerRules(verify=True),
    "subtitles": False,
    "screen_text": False,
    "keep_captions": False,
}


def past_run(folder: Path, cost: float, **others: Any) -> Path:
    answers = [answer(each.item_id, ledger=Ledger(calls=1, cost=cost)) for each in ITEMS]
    return write_run(folder, ITEMS, answers, **{**SETTINGS, **others})


@pytest.mark.parametrize("name", ALIKE)
def test_a_run_that_differs_in_what_costs_depend_on_is_no_past_run(name: str, tmp_path: Path) -> None:
    assert set(OTHER) == set(ALIKE)
    past_run(tmp_path / "past", 2.0, **{name: OTHER[name]})
    assert past_ledgers(tmp_path / "new", PLANNED, PLANNED.contenders[0]) == ([], "")
    past_run(tmp_path / "alike", 3.0)
    ledgers, folder = past_ledgers(tmp_path / "new", PLANNED, PLANNED.contenders[0])
    assert (folder, {each.cost for each in ledgers}) == ("alike", {3.0})


def test_of_a_video_that_changed_since_nothing_is_known_and_others_do_not_matter(tmp_path: Path) -> None:
    past_run(tmp_path / "past", 2.0)
    system = PLANNED.contenders[0]
    changed = replace(PLANNED, states={"library:v1": "b"})
    assert past_ledgers(tmp_path / "new", changed, system) == ([], "")
    more = replace(PLANNED, states={"library:v1": "a", "library:v2": "c"})
    assert past_ledgers(tmp_path / "new", more, system)[1] == "past"


DAMAGE: dict[str, bytes | None] = {
    "text": b"nonsense\n",
    "shape": b'{"contender": 5}\n',
    "bytes": b"\xff\xfe\n",
    "depth": b"[" * 100_000 + b"\n",
    "a folder": None,
}


@pytest.mark.parametrize("kind", DAMAGE)
@pytest.mark.parametrize("name", [ANSWERS, PLAN])
def test_a_damaged_neighbour_is_left_out(kind: str, name: str, tmp_path: Path) -> None:
    past_run(tmp_path / "good", 3.0)
    damaged = past_run(tmp_path / "damaged", 2.0)
    os.utime(tmp_path / "good" / PLAN, (1, 1))  # the damaged one is newer
    (damaged / name).unlink()
    content = DAMAGE[kind]
    (damaged / name).mkdir() if content is None else (damaged / name).write_bytes(content)
    (tmp_path / "file").write_text("no folder")
    ledgers, folder = past_ledgers(tmp_path / "new", PLANNED, PLANNED.contenders[0])
    assert (folder, {each.cost for each in ledgers}) == ("good", {3.0})


def test_the_folder_itself_counts_before_newer_ones(tmp_path: Path) -> None:
    past_run(tmp_path / "own", 1.0)
    past_run(tmp_path / "newer", 2.0)
    os.utime(tmp_path / "own" / PLAN, (1, 1))
    assert past_ledgers(tmp_path / "own", PLANNED, PLANNED.contenders[0])[1] == "own"
    assert past_ledgers(tmp_path / "other", PLANNED, PLANNED.contenders[0])[1] == "newer"
    assert past_ledgers(tmp_path / "nowhere" / "deep", PLANNED, PLANNED.contenders[0]) == ([], "")
