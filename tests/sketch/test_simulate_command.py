"""`python -m tests.sketch.simulation`: its files; and what the command that was does now."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.sketch.simulation import main
from tests.support.command import Kinodex, bad
from tests.support.libraries import benchmark_files as kit


@pytest.mark.slow
def test_a_sweep_over_the_questions_of_a_file_is_simulated_and_written(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = kit.published(tmp_path, "lvbench", kit.lvbench_row(questions=[kit.lvbench_question()]))
    main(tmp_path / "out", ["false-confidence"], annotations=path)
    said = capsys.readouterr()
    assert said.out == f"{tmp_path / 'out' / 'simulate.html'}\n"
    assert said.err == "false-confidence: 24 trials of 1 questions\n"
    made = json.loads((tmp_path / "out" / "simulate.json").read_text())
    assert made["simulated"] is True
    assert [each["name"] for each in made["sweeps"]] == ["false-confidence"]


def test_the_command_that_was_names_its_place(kinodex: Kinodex) -> None:
    bad(kinodex, "eval", "simulate", "--out", "here", code=2, says="python -m tests.sketch.simulation")
