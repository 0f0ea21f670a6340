"""Anchors: chains of clips with and without a greatest length, and their best match that counts."""

from __future__ import annotations

import pytest

from kinodex.agent.anchors import (
    anchors,
    chains,
    find_matches,
    named_times_s,
    per_video,
    question_anchors,
)
from kinodex.agent.environment import Environment
from kinodex.agent.protocol import Anchor, Question
from kinodex.index.library import Library
from tests.support.libraries.agent_library import add_film, environment_of, film, make_library

LENGTH_S = {"v": 8.0, "w": 8.0}
KITE = "red kite desert"


def match(time_s: float, similarity: float, query: str = "kite", video: str = "v") -> Anchor:
    return Anchor(video, int(time_s), time_s, similarity, query)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    films = {"short": film(3, 180, {60: (KITE, 4)})}
    return environment_of(make_library(tmp_path_factory.mktemp("anchors"), films))


def test_overlapping_clips_of_all_queries_share_one_anchor() -> None:
    matches = [match(10, 0.5), match(14, 0.9, "red kite"), match(30, 0.4), match(14, 0.2)]
    for longest_s in (None, {"v": 8.0}):
        found = anchors(chains(matches, LENGTH_S, longest_s))
        assert [(each.time_s, each.similarity, each.query) for each in found] == [
            (14, 0.9, "red kite"),
            (30, 0.4, "kite"),
        ]


def test_a_chain_ends_at_its_greatest_length_where_without_one_it_is_the_whole_video() -> None:
    every_6_s = [match(time_s, 0.1 + time_s / 1000) for time_s in range(0, 180, 6)]
    assert len(anchors(chains(every_6_s, LENGTH_S))) == 1
    found = chains(every_6_s, LENGTH_S, {"v": 12.0})
    assert len(anchors(found)) == 15
    assert all(max(each.time_s for each in one) - min(each.time_s for each in one) < 12 for one in found)


def test_a_cluster_is_represented_by_its_best_unseen_match_and_not_at_all_once_all_were_seen() -> None:
    found = chains([match(10, 0.9), match(12, 0.5), match(40, 0.3)], LENGTH_S)
    assert [each.time_s for each in anchors(found, {("v", 10)})] == [12, 40]
    assert [each.time_s for each in anchors(found, {("v", 10), ("v", 12)})] == [40]
    assert [each.time_s for each in anchors(found)] == [10, 40]


def test_frames_that_match_no_better_than_the_median_are_no_matches(environment: Environment) -> None:
    gaps_s = per_video(environment, lambda video: 0.0)
    everything = find_matches(environment, [KITE], 180, gaps_s)
    assert 0 < len(everything) <= 90
    assert min(each.similarity for each in everything) > 0


# Anchors of times that a question names.


STREAM_S = 1000.0
"""The presentation time at which the stream begins."""


@pytest.fixture(scope="module")
def environment_time_anchors(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return environment_of(make_library(tmp_path_factory.mktemp("times"), {"film": film(1, 400)}))


@pytest.fixture(scope="module")
def streamed(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """A stream whose timestamps begin late, and a film."""
    library = make_library(tmp_path_factory.mktemp("stream"), {"film": film(1, 120)})
    add_film(library, "stream", film(2, 120), start_s=STREAM_S)
    return library


def test_points_in_time_are_read_and_lengths_are_not() -> None:
    for text, times_s in [
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
    ]:
        assert named_times_s(text) == times_s, (text, times_s)


def test_times_of_a_question_are_those_that_a_player_shows(streamed: Library) -> None:
    environment_time_anchors = environment_of(streamed)
    found = question_anchors(environment_time_anchors, Question("What happens at 01:23?"))
    times_s = {(each.query, environment_time_anchors.video(each.video_id).title): each.time_s for each in found}
    assert times_s == {("at 83 s", "film"): 83, ("at 83 s", "stream"): 83}
