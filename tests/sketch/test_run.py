"""A simulation in several processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from kinodex.jobs.errors import UsageError
from tests.sketch.simulation import Sweep, Trial, make_questions, simulate
from tests.support.runs.eval_runs import OWN_AGENT


@pytest.mark.slow
def test_a_process_that_dies_ends_a_simulation_with_one_line(tmp_path: Path) -> None:
    agent = tmp_path / "deadly.py"
    dies = 'name="deadly", run=lambda session, parameters: os.kill(os.getpid(), signal.SIGKILL)'
    agent.write_text("import os, signal\n" + OWN_AGENT.replace('name="mine"', dies))
    sweep = Sweep("deadly", "", "", "conditions", "deadly", (Trial(0.0, "deadly", str(agent)),))
    with pytest.raises(UsageError, match=r"one of the 2 processes of the simulation died .* fewer --workers"):
        simulate([sweep], make_questions(1, seed=0), 0, 2, print)
