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
    ("calls", "in_sequence", "at_once", "seconds"), [(64, 2, 32, 1.0), (33, 1, 32, 0.515625), (6, 5, 32, 2.5)]
)
def test_the_ideal_shares_calls_out_evenly_but_for_those_that_wait_for_each_other(
    calls: int, in_sequence: int, at_once: int, seconds: float
) -> None:
    assert ideal(calls, in_sequence, Load(at_once=at_once, latency_s=0.5)) == pytest.approx(seconds)


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
