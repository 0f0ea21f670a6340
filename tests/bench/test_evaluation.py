"""`kinodex bench eval`: the ideal it measures against, the server that stands in for a model, and a whole small run."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kinodex.jobs.errors import UsageError
from tests.bench.evaluation import Load, bench_eval, ideal, table
from tests.support.libraries.sketch_library import SketchLibrary

LATENCY_S = 0.05


@pytest.mark.parametrize(
    ("questions", "at_once", "steps"),
    [([(1, 1)] * 64, 32, 2), ([(3, 3)], 32, 3), ([(4, 2)], 2, 2), ([(4, 2)], 1, 4), ([(5, 5), (1, 1), (1, 1)], 2, 5)],
)
def test_the_ideal_is_what_calls_take_of_which_some_wait_for_others(
    questions: list[tuple[int, int]], at_once: int, steps: int
) -> None:
    assert ideal(questions, Load(at_once=at_once, latency_s=0.5)) == pytest.approx(0.5 * steps)


@pytest.mark.slow
def test_a_small_run(copy_sketches: Callable[[Path], SketchLibrary], tmp_path: Path) -> None:
    copy_sketches(tmp_path)
    shutil.copy(tmp_path / "questions.jsonl", tmp_path / "films" / "questions.jsonl")
    load = Load(questions=6, at_once=2, latency_s=LATENCY_S)
    uniform, eea = bench_eval(tmp_path, ["uniform", "eea"], load, lambda line: None)
    assert (uniform.questions, uniform.calls, uniform.calls_in_sequence) == (6, 6, 1.0)
    assert uniform.ideal_s == pytest.approx(3 * LATENCY_S) and uniform.wall_s > uniform.ideal_s
    # A round of EEA is a call for scores and search texts, then one for the decision; queries come before the first.
    assert 3.0 <= eea.calls_in_sequence == pytest.approx(eea.calls / eea.questions)
    assert eea.wall_s > eea.ideal_s and eea.added == pytest.approx(eea.wall_s / eea.ideal_s - 1)
    assert "| eea |" in table([uniform, eea], load)


def test_an_agent_that_the_stand_in_does_not_play(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="plays eea, vca, uniform, blind"):
        bench_eval(tmp_path, ["videoseek"], Load(), lambda line: None)
