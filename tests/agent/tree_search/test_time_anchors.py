"""Anchors of times that a question names."""

from __future__ import annotations

import pytest

from kinodex.agent.anchors import IN_OPTION, IN_QUESTION, named_times_s, question_anchors
from kinodex.agent.environment import Environment
from kinodex.agent.protocol import Question
from kinodex.index.library import Library
from tests.support.libraries.agent_library import add_film, environment_of, film, make_library

STREAM_S = 1000.0
"""The presentation time at which the stream begins."""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return environment_of(make_library(tmp_path_factory.mktemp("times"), {"film": film(1, 400)}))


@pytest.fixture(scope="module")
def streamed(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """A stream whose timestamps begin late, and a film."""
    library = make_library(tmp_path_factory.mktemp("stream"), {"film": film(1, 120)})
    add_film(library, "stream", film(2, 120), start_s=STREAM_S)
    return library


@pytest.mark.parametrize(
    ("text", "times_s"),
    [
        ("What happens at 01:23?", [83]),
        ("What is said at 1:02:03, and who says it?", [3723]),
        ("What happens between 00:15-00:19?", [15, 19]),
        ("What happens after 5 minutes?", [300]),
        ("What is seen at about 90 seconds?", [90]),
        ("Who enters at 1 minute and 30 seconds?", [90]),
        ("What is seen at minute 3?", [180]),
        ("Who leads the race at 100 m?", []),
        ("Who leads the race at 400m, and who after 800 m?", []),
        ("Who leads at 5 m 30 s?", [330]),
        ("Who leads at 5m30s?", [330]),
        ("Who leads at 1 h 5 m?", [3900]),
        ("Who leads after 5 min?", [300]),
        ("What is at the 4-minute mark?", [240]),
        ("Who comes two minutes later?", []),
        ("What is done for 5 minutes?", []),
        ("What happens after 5 minutes of silence?", []),
        ("Does the train leave at 10:30 am?", []),
        ("Is the picture 16:9?", []),
        ("Who speaks to the man at 3 o'clock?", []),
    ],
)
def test_points_in_time_are_read_and_lengths_are_not(text: str, times_s: list[float]) -> None:
    assert named_times_s(text) == times_s


def test_the_frame_at_a_time_of_the_question_is_an_anchor(environment: Environment) -> None:
    question = Question("What happens at 01:23, as in 2:00:00?", ("the kite of 2:05", "a boat"))
    found = question_anchors(environment, question)
    assert {(each.time_s, each.similarity) for each in found} == {(83, IN_QUESTION), (125, IN_OPTION)}


def test_times_of_a_question_are_those_that_a_player_shows(streamed: Library) -> None:
    environment = environment_of(streamed)
    found = question_anchors(environment, Question("What happens at 01:23?"))
    times_s = {(each.query, environment.video(each.video_id).title): each.time_s for each in found}
    assert times_s == {("at 83 s", "film"): 83, ("at 83 s", "stream"): 83}
