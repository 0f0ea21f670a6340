"""`kinodex bench eval`: the ideal it measures against, the server that stands in for a model, and a whole small run."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from jobs.bench_eval import Load, bench_eval, ideal, table
from jobs.errors import UsageError
from tests.sketch_library import draw_library

LATENCY_S = 0.05


@pytest.mark.parametrize(
    ("depths", "at_once", "calls"),
    [([1] * 64, 32, 2), ([3], 32, 3), ([4, 1, 1, 1, 1], 2, 4), ([1, 1, 4], 2, 5), ([2, 2, 2], 1, 6)],
)
def test_the_ideal_puts_each_question_on_the_slot_that_is_free_first(
    depths: list[int], at_once: int, calls: int
) -> None:
    assert ideal(depths, Load(at_once=at_once, latency_s=0.5)) == pytest.approx(0.5 * calls)


def test_a_small_run(tmp_path: Path) -> None:
    draw_library(tmp_path)
    shutil.copy(tmp_path / "questions.jsonl", tmp_path / "films" / "questions.jsonl")
    load = Load(questions=6, at_once=2, latency_s=LATENCY_S)
    uniform, eea = bench_eval(tmp_path, ["uniform", "eea"], load, lambda line: None)
    assert (uniform.questions, uniform.calls, uniform.calls_in_sequence) == (6, 6, 1.0)
    assert uniform.ideal_s == pytest.approx(3 * LATENCY_S) and uniform.wall_s > uniform.ideal_s
    # A round of EEA is two calls side by side, then one; queries come before the first.
    assert 3.0 <= eea.calls_in_sequence < eea.calls / eea.questions
    assert eea.wall_s > eea.ideal_s and eea.added == pytest.approx(eea.wall_s / eea.ideal_s - 1)
    assert "| eea |" in table([uniform, eea], load)


def test_an_agent_that_the_stand_in_does_not_play(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="plays eea, vca, uniform, blind"):
        bench_eval(tmp_path, ["videoseek"], Load(), lambda line: None)
