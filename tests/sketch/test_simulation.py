"""`python -m tests.sketch.simulation`: question sets, trials, figures, the page and the command."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from kinodex.index.errors import KinodexError
from kinodex.jobs.errors import UsageError
from kinodex.jobs.eval.contenders import parse_contenders
from tests.sketch.simulation import (
    FRAMES_AT_MOST,
    Sweep,
    Trial,
    TrialResult,
    add_agents,
    aggregate_sweep,
    all_sweeps,
    check_agents,
    describe,
    main,
    make_questions,
    read_questions,
    run_trial,
    select_sweeps,
    with_agents,
)
from tests.support.command import Kinodex, bad
from tests.support.libraries import benchmark_files as kit
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
    (mine_said,) = run_trial(mine[0], make_questions(1, 0), 0)
    assert mine_said.frames == 4
    with pytest.raises(UsageError, match="got --agent eea, which is compared anyway"):
        with_agents(sweep, parse_contenders(["eea"], controls=False))


def test_an_agent_that_no_sweep_would_take_or_that_cannot_be_simulated_is_refused():
    also, choices = parse_contenders(["uniform:frames=4"], controls=False), select_sweeps(["pooling", "halfway"])
    with pytest.raises(UsageError, match=r"got --agent uniform:.* --sweep pooling, halfway, .*: reward-noise, match, "):
        add_agents(choices, also)
    assert add_agents(choices, []) == list(choices)
    both = add_agents(select_sweeps(["pooling", "match"]), also)
    assert [any(trial.series == also[0].name for trial in sweep.trials) for sweep in both] == [False, True]
    for agent, says in (
        ("videotree", "asks a model as captioner"),
        ("longvideoagent", "asks a model as grounding"),
        ("videoseek", "cannot answer Think"),
        ("uniform:frame=4", "did you mean 'frames'"),
    ):
        with pytest.raises(KinodexError, match=says):
            check_agents(parse_contenders([agent], controls=False), make_questions(1, 0))


def test_a_trial_says_when_evidence_was_first_shown():
    questions = make_questions(10, seed=0)
    outcomes = run_trial(Trial(16.0, "uniform", "uniform", {"frames": 64}), questions, seed=0)
    assert outcomes == run_trial(Trial(16.0, "uniform", "uniform", {"frames": 64}), questions, seed=0)
    assert {each.frames_to_evidence for each in outcomes} <= {None, 64}
    assert {each.frames for each in outcomes} == {64}
    assert [each.video for each in outcomes] == [each.video for each in questions]
    short = run_trial(Trial(1.0, "uniform", "uniform", {"frames": 32}, duration_s=60.0), questions, seed=0)
    assert sum(each.frames_to_evidence is not None for each in short) >= 8, "videos as long as wanted"


def test_figures_are_compared_on_the_same_questions():
    trials = tuple(Trial(x, "world", "eea") for x in ("a", "b"))
    swept = aggregate_sweep(
        Sweep("s", "title", "axis", "choice", "a", trials),
        [
            [outcome("v", True, 6), outcome("v", False, None), outcome("w", False, 12)],
            [outcome("v", True, 6), outcome("v", True, 24), outcome("w", False, 6)],
        ],
    )
    first, second = swept.points
    assert first.difference is None
    assert first.means.found.mean == pytest.approx(2 / 3)
    assert first.means.frames_to_evidence.mean == pytest.approx((6 + FRAMES_AT_MOST + 12) / 3)
    assert second.difference is not None
    assert second.difference.frames_to_evidence.mean == pytest.approx((24 - FRAMES_AT_MOST + 6 - 12) / 3)
    assert second.difference.accuracy.mean == pytest.approx(1 / 3)
    assert second.means.found.high == 1.0
    assert [point.means.found.mean for point in swept.pooled] == pytest.approx([0.0, 1 / 3])
    trials = tuple(Trial(x, series, "eea") for x in (1.0, 2.0) for series in ("eea", "vca"))
    results = [[outcome("v", right, 6), outcome("w", right, 6)] for right in (True, False, False, True)]
    swept = aggregate_sweep(Sweep("s", "title", "axis", "conditions", "eea", trials), results)
    assert [point.difference.accuracy.mean for point in swept.points if point.difference] == [-1.0, 1.0]
    assert swept.pooled == (), "agents are compared at the same place"


def test_made_questions_are_like_lvbench():
    questions = make_questions(1000, seed=3)
    lengths_s = {each.video: each.duration_s for each in questions}
    shown_s = [end_s - start_s for each in questions for start_s, end_s in each.evidence]
    assert len(lengths_s) == 200
    assert np.mean(list(lengths_s.values())) == pytest.approx(4101, rel=0.08)
    assert min(lengths_s.values()) >= 1800
    assert np.median(shown_s) == pytest.approx(20, rel=0.15)
    assert all(0 <= each.evidence[0][0] < each.evidence[0][1] <= each.duration_s for each in questions)
    assert {each.option for each in questions} == {0, 1, 2, 3}
    assert make_questions(1000, seed=3) == questions
    assert "1000 questions about 200 videos" in describe(questions)


@pytest.mark.slow
def test_sweeps_over_the_questions_of_a_file_are_simulated_and_written(
    kinodex: Kinodex, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    bad(kinodex, "eval", "simulate", "--out", "here", code=2, says="python -m tests.sketch.simulation")
    qa = kit.lvbench_question()
    path = kit.published(tmp_path, "lvbench", kit.lvbench_row(questions=[qa]))
    (question,) = read_questions(path, 10, seed=0)
    assert question.options == 4 and question.evidence and question.duration_s
    capsys.readouterr()
    main(tmp_path / "out", ["anchors"], annotations=path, questions=10)
    said = capsys.readouterr()
    assert said.out == f"{tmp_path / 'out' / 'simulate.md'}\n"
    assert said.err == "anchors: 32 trials of 1 questions\n"
    made = json.loads((tmp_path / "out" / "simulate.json").read_text())
    assert made["simulated"] is True and [each["name"] for each in made["sweeps"]] == ["anchors"]
    text = (tmp_path / "out" / "simulate.md").read_text()
    assert text.count("SIMULATION") == 2 and "| here | all worlds | 0.0" in text
    point = next(each for each in made["sweeps"][0]["points"] if each["difference"])
    (row,) = [line for line in text.splitlines() if line.startswith(f"| {point['x']} | {point['series']} |")]
    figures = {"found": 100, "frames_to_evidence": 1, "accuracy": 100, "frames": 1, "rounds": 1}
    differences = [f"({factor * point['difference'][name]['mean']:.1f}" for name, factor in figures.items()]
    assert re.findall(r"\([−\d.]+", row) == [each.replace("-", "−") for each in differences]
    kit.published(tmp_path, "lvbench", kit.lvbench_row(questions=[qa | {"time_reference": ""}]))
    with pytest.raises(UsageError, match=r"no question has a time reference|no question of LVBench can be read"):
        read_questions(path, 10, seed=0)
