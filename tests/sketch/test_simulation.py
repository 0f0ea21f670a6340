"""`python -m tests.sketch.simulation`: question sets, trials, figures, the page and the command."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from kinodex.index.errors import KinodexError
from kinodex.jobs.errors import UsageError
from kinodex.jobs.eval.folder import parse_contenders
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
    read_simulation,
    run_trial,
    select_sweeps,
    simulate,
    with_agents,
    write_simulation,
)
from tests.support.command import Kinodex, bad
from tests.support.libraries import benchmark_files as kit
from tests.support.runs.eval_runs import OWN_AGENT


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


def test_a_trial_says_when_evidence_was_first_shown():
    questions = make_questions(10, seed=0)
    outcomes = run_trial(Trial(16.0, "uniform", "uniform", {"frames": 64}), questions, seed=0)
    assert outcomes == run_trial(Trial(16.0, "uniform", "uniform", {"frames": 64}), questions, seed=0)
    assert {each.frames_to_evidence for each in outcomes} <= {None, 64}
    assert {each.frames for each in outcomes} == {64}
    assert [each.video for each in outcomes] == [each.video for each in questions]


def test_videos_can_be_made_as_long_as_wanted():
    questions = make_questions(10, seed=0)
    short = run_trial(Trial(1.0, "uniform", "uniform", {"frames": 32}, duration_s=60.0), questions, seed=0)
    assert sum(each.frames_to_evidence is not None for each in short) >= 8


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


def test_under_conditions_agents_are_compared_at_the_same_place():
    trials = tuple(Trial(x, series, "eea") for x in (1.0, 2.0) for series in ("eea", "vca"))
    outcomes = [[outcome("v", right, 6), outcome("w", right, 6)] for right in (True, False, False, True)]
    swept = aggregate_sweep(Sweep("s", "title", "axis", "conditions", "eea", trials), outcomes)
    differences = [point.difference.accuracy.mean for point in swept.points if point.difference]
    assert differences == [-1.0, 1.0]
    assert swept.pooled == ()


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


def annotation_file(folder: Path, **changed: object) -> Path:
    qa = {
        "uid": "1",
        "question": "What is seen?\n(A) a boat\n(B) a car\n(C) a tree\n(D) a fish",
        "answer": "B",
        "question_type": ["key information retrieval"],
        "time_reference": "10:15-10:35",
    }
    row = {
        "key": "made-up",
        "type": "sport",
        "video_info": {"duration_minutes": 61.0, "fps": 25.0, "resolution": {"width": 640, "height": 360}},
        "qa": [qa | changed, qa | {"uid": "2", "time_reference": "20:00-21:00"} | changed],
    }
    path = folder / "video_info.meta.jsonl"
    path.write_text(json.dumps(row) + "\n")
    return path


def test_an_annotation_file_gives_lengths_and_time_references(tmp_path):
    first, second = read_questions(annotation_file(tmp_path), 10, seed=0)
    assert (first.evidence, first.option, first.options) == (((615.0, 635.0),), 1, 4)
    assert (second.evidence, second.duration_s, second.video) == (((1200.0, 1260.0),), 3660.0, "made-up")
    assert len(read_questions(annotation_file(tmp_path), 1, seed=0)) == 1


def test_an_annotation_file_without_times_is_refused(tmp_path):
    with pytest.raises(UsageError, match=r"no question has a time reference|no question of LVBench can be read"):
        read_questions(annotation_file(tmp_path, time_reference=""), 10, seed=0)


@pytest.mark.slow
def test_a_process_that_dies_ends_a_simulation_with_one_line(tmp_path: Path) -> None:
    agent = tmp_path / "deadly.py"
    dies = 'name="deadly", run=lambda session, parameters: os.kill(os.getpid(), signal.SIGKILL)'
    agent.write_text("import os, signal\n" + OWN_AGENT.replace('name="mine"', dies))
    sweep = Sweep("deadly", "", "", "conditions", "deadly", (Trial(0.0, "deadly", str(agent)),))
    with pytest.raises(UsageError, match=r"one of the 2 processes of the simulation died .* fewer --workers"):
        simulate([sweep], make_questions(1, seed=0), 0, 2, print)


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.text = ""
        self.links: list[str] = []

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.links += [value for name, value in attrs if name in ("src", "href") and value]


def test_the_page_says_that_it_is_a_simulation_and_stands_alone(tmp_path):
    trials = tuple(
        Trial(float(minutes), agent, agent, duration_s=60.0 * minutes) for minutes in (2, 4) for agent in ("eea", "vca")
    )
    sweep = Sweep("duration", "Length <of> the videos", "minutes", "conditions", "eea", trials)
    simulation = simulate([sweep], make_questions(10, seed=0), 0, 1, lambda line: None)
    page = write_simulation(simulation, tmp_path)
    assert read_simulation(tmp_path) == simulation
    assert json.loads((tmp_path / "simulate.json").read_text())["simulated"] is True
    reader = _Text()
    reader.feed(page.read_text())
    assert reader.text.count("SIMULATION") >= 2
    assert "Length <of> the videos" in reader.text
    assert not [link for link in reader.links if not link.startswith("#")]
    assert {path.name for path in (tmp_path / "figures").iterdir()} == {"duration.svg", "duration.png"}
