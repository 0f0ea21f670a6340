"""One trial of a simulation."""

from __future__ import annotations

from tests.sketch.simulation import Trial, make_questions, run_trial


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
