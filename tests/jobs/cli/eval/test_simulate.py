"""`kinodex eval simulate`: its files, and the line after Ctrl-C."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from kinodex.cli.eval import app
from tests.support.command import Kinodex
from tests.support.libraries import benchmark_files as kit


@pytest.mark.slow
def test_a_sweep_over_the_questions_of_a_file_is_simulated_and_written(kinodex: Kinodex, tmp_path: Path) -> None:
    path = kit.published(tmp_path, "lvbench", kit.lvbench_row(questions=[kit.lvbench_question()]))
    options = ("--sweep", "false-confidence", "--annotations", path, "--out", tmp_path / "out")
    ran = kinodex("eval", "simulate", *options)
    assert (ran.code, ran.out) == (0, f"{tmp_path / 'out' / 'simulate.html'}\n")
    assert ran.err == "false-confidence: 24 trials of 1 questions\n"
    made = json.loads((tmp_path / "out" / "simulate.json").read_text())
    assert made["simulated"] is True
    assert [each["name"] for each in made["sweeps"]] == ["false-confidence"]


@pytest.mark.usefixtures("ctrl_c")
def test_an_interrupted_simulation_does_not_say_that_work_is_kept(
    kinodex: Kinodex, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def interrupted(out: Path) -> None:
        signal.raise_signal(signal.SIGINT)

    (command,) = [each for each in app.registered_commands if each.name == "simulate"]
    monkeypatch.setattr(command, "callback", interrupted)
    ran = kinodex("eval", "simulate", tmp_path)
    assert ran.code == 130
    assert ran.err.strip() == (
        "interrupted: a simulation is written only at its end; run the command again to start from the beginning"
    )
