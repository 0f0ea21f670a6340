"""Anchors: chains of clips with and without a greatest length, and their best match that counts."""

from __future__ import annotations

from pathlib import Path

from kinodex.agent.protocol.question import Question
from kinodex.agent.protocol.videos import Anchor
from kinodex.agent.search.anchors import anchors, chains, find_matches, per_video
from kinodex.agent.search.named_times import named_times_s, question_anchors
from tests.support.libraries.agent_library import add_film, environment_of, film, make_library

LENGTH_S = {"v": 8.0, "w": 8.0}


def match(time_s: float, similarity: float, query: str = "kite", video: str = "v") -> Anchor:
    return Anchor(video, int(time_s), time_s, similarity, query)


def test_overlapping_clips_share_the_best_unseen_match_as_an_anchor_and_a_chain_has_a_greatest_length() -> None:
    matches = [match(10, 0.5), match(14, 0.9, "red kite"), match(30, 0.4), match(14, 0.2)]
    for longest_s in (None, {"v": 8.0}):
        found = [(each.time_s, each.similarity, each.query) for each in anchors(chains(matches, LENGTH_S, longest_s))]
        assert found == [(14, 0.9, "red kite"), (30, 0.4, "kite")], "of all queries"
    every_6_s = [match(time_s, 0.1 + time_s / 1000) for time_s in range(0, 180, 6)]
    assert len(anchors(chains(every_6_s, LENGTH_S))) == 1, "without one it is the whole video"
    found_chains = chains(every_6_s, LENGTH_S, {"v": 12.0})
    assert len(anchors(found_chains)) == 15
    assert all(max(each.time_s for each in one) - min(each.time_s for each in one) < 12 for one in found_chains)
    seen = chains([match(10, 0.9), match(12, 0.5), match(40, 0.3)], LENGTH_S)
    assert [each.time_s for each in anchors(seen, {("v", 10)})] == [12, 40]
    assert [each.time_s for each in anchors(seen, {("v", 10), ("v", 12)})] == [40], "once all were seen"
    assert [each.time_s for each in anchors(seen)] == [10, 40]


def test_frames_that_match_no_better_than_the_median_are_no_matches(tmp_path: Path) -> None:
    environment = environment_of(make_library(tmp_path, {"short": film(3, 180, {60: ("red kite desert", 4)})}))
    everything = find_matches(environment, ["red kite desert"], 180, per_video(environment, lambda video: 0.0))
    assert 0 < len(everything) <= 90 and min(each.similarity for each in everything) > 0


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


def test_times_of_a_question_are_those_that_a_player_shows(tmp_path: Path) -> None:
    """Also of a stream whose timestamps begin late."""
    library = make_library(tmp_path, {"film": film(1, 120)})
    add_film(library, "stream", film(2, 120), start_s=1000.0)
    environment = environment_of(library)
    found = question_anchors(environment, Question("What happens at 01:23?"))
    times_s = {(each.query, environment.video(each.video_id).title): each.time_s for each in found}
    assert times_s == {("at 83 s", "film"): 83, ("at 83 s", "stream"): 83}
