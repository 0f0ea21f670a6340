"""Verdicts on frames: when a choice is settled."""

from __future__ import annotations

from agent.core.question import Question
from agent.models.rulebased import judge_frames
from tests.support.agent_library import environment_of, film, make_library


def test_the_order_of_four_is_settled_once_all_were_seen(tmp_path):
    shown = {20: ("orange kite desert", 5), 60: ("purple rocket", 5), 100: ("pink frog", 5), 140: ("grey snail", 5)}
    environment = environment_of(make_library(tmp_path / "four", {"four": film(1, 200, shown)}))
    question = Question("Which of these is seen first?", ("a pink frog", "a grey snail", "a purple rocket", "a kite"))
    video_id = environment.videos[0].video_id
    verdict = judge_frames.judge(environment, question, environment.frames(video_id, list(shown)))
    assert (verdict.choice, judge_frames.is_settled(verdict)) == (3, True)
    verdict = judge_frames.judge(environment, question, environment.frames(video_id, [20, 60, 100]))
    assert (verdict.choice, judge_frames.is_settled(verdict)) == (3, False)
