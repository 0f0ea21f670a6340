"""`kinodex eval simulate`: question sets, trials, figures, the page and the command."""

from __future__ import annotations

import pytest

from kinodex.index.errors import KinodexError
from kinodex.jobs.errors import UsageError
from kinodex.jobs.eval.contenders import parse_contenders
from tests.sketch.simulation import (
    TrialResult,
    add_agents,
    all_sweeps,
    check_agents,
    make_questions,
    run_trial,
    select_sweeps,
    with_agents,
)
from tests.support.runs.eval_runs import OWN_AGENT


def outcome(video: str, right: bool, frames_to_evidence: int | None) -> TrialResult:
    return TrialResult(video, right, frames_to_evidence, frames=12, rounds=2)


def test_every_sweep_holds_what_it_is_compared_with():
    for sweep in all_sweeps():
        if sweep.kind == "choice":
            assert any(trial.x == sweep.against for trial in sweep.trials), sweep.name
            assert len({trial.series for trial in sweep.trials}) == 16
        else:
            assert any(trial.series == sweep.against for trial in sweep.trials), sweep.name
    assert [sweep.name for sweep in select_sweeps(["match", "pooling"])] == ["match", "pooling"]
    with pytest.raises(UsageError, match=r"no sweep 'luck'; the sweeps are reward-noise, .*halfway"):
        select_sweeps(["luck"])


def test_agents_of_ones_own_are_compared_under_the_same_conditions(tmp_path):
    own = tmp_path / "mine.py"
    own.write_text(OWN_AGENT)
    (sweep,) = (
        with_agents(each, parse_contenders([f"{own}:frames=4"], controls=False)) for each in select_sweeps(["match"])
    )
    mine = [trial for trial in sweep.trials if trial.series == "mine:frames=4"]
    theirs = [trial for trial in sweep.trials if trial.series == "eea"]
    assert [(trial.x, trial.scenery, trial.noise) for trial in mine] == [
        (trial.x, trial.scenery, trial.noise) for trial in theirs
    ]
    (outcome,) = run_trial(mine[0], make_questions(1, 0), 0)
    assert outcome.frames == 4
    with pytest.raises(UsageError, match="got --agent eea, which is compared anyway"):
        with_agents(sweep, parse_contenders(["eea"], controls=False))


def test_an_agent_that_no_sweep_would_take_is_refused():
    also, choices = parse_contenders(["uniform:frames=4"], controls=False), select_sweeps(["pooling", "halfway"])
    with pytest.raises(UsageError, match=r"got --agent uniform:.* --sweep pooling, halfway, .*: reward-noise, match, "):
        add_agents(choices, also)
    assert add_agents(choices, []) == list(choices)
    both = add_agents(select_sweeps(["pooling", "match"]), also)
    assert [any(trial.series == also[0].name for trial in sweep.trials) for sweep in both] == [False, True]


@pytest.mark.parametrize(
    ("agent", "says"),
    [
        ("videotree", "asks a model as captioner"),
        ("longvideoagent", "asks a model as grounding"),
        ("videoseek", "cannot answer Think"),
        ("uniform:frame=4", "did you mean 'frames'"),
    ],
)
def test_an_agent_that_cannot_be_simulated_is_refused_before_the_sweeps(agent, says):
    with pytest.raises(KinodexError, match=says):
        check_agents(parse_contenders([agent], controls=False), make_questions(1, 0))


def test_an_unknown_sweep_is_refused_with_the_names_of_those_that_there_are() -> None:
    with pytest.raises(UsageError, match="the sweeps are reward-noise"):
        select_sweeps(["luck"])
