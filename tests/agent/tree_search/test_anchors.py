"""Anchors: chains of clips with and without a greatest length, and their best match that counts."""

from __future__ import annotations

import pytest

from kinodex.agent.anchors import anchors, chains, clip_length_s, drawing_order, find_matches, per_video
from kinodex.agent.environment import Environment
from kinodex.agent.protocol import Anchor, Video
from tests.support.libraries.agent_library import environment_of, film, make_library

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


def test_clips_of_different_videos_do_not_overlap() -> None:
    assert len(anchors(chains([match(10, 0.5), match(11, 0.9, video="w")], LENGTH_S))) == 2


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


def test_places_never_looked_at_draw_before_a_second_match_of_one_that_was() -> None:
    found = chains([match(10, 0.9), match(12, 0.8), match(40, 0.3), match(80, 0.5)], LENGTH_S)
    assert [each.time_s for each in drawing_order(found, ())] == [10, 80, 40]
    assert [each.time_s for each in drawing_order(found, {("v", 10)})] == [80, 40, 12]


def test_clips_are_shorter_in_videos_too_short_for_many() -> None:
    assert clip_length_s(Video("v", "", 0.0, 3600.0), 8.0, 16) == 8.0
    assert clip_length_s(Video("v", "", 0.0, 32.0), 8.0, 16) == 2.0


def test_new_queries_add_anchors_on_a_short_video(environment: Environment) -> None:
    """180 s: with chains three anchors of the first query became one after two updates."""
    video_id = environment.videos[0].video_id
    gaps_s, lengths_s = ({video_id: value} for value in (4.0, 8.0))
    matches: list[Anchor] = []
    counts: dict[str, list[int]] = {"limited": [], "endless": []}
    for queries in ([KITE], ["white cat snow", "boat sea"], ["green ball grass", "blue car street"]):
        matches += find_matches(environment, queries, 16, gaps_s)
        counts["limited"].append(len(anchors(chains(matches, lengths_s, {video_id: 11.25}))))
        counts["endless"].append(len(anchors(chains(matches, lengths_s))))
    assert counts["limited"] == sorted(counts["limited"])
    assert counts["limited"][-1] >= 8
    assert counts["endless"][-1] < counts["endless"][0]


def test_frames_that_match_no_better_than_the_median_are_no_matches(environment: Environment) -> None:
    gaps_s = per_video(environment, lambda video: 0.0)
    everything = find_matches(environment, [KITE], 180, gaps_s)
    assert 0 < len(everything) <= 90
    assert min(each.similarity for each in everything) > 0


def test_a_later_query_is_on_the_scale_of_the_first_ones(environment: Environment) -> None:
    """Asked for in batches, a query was on another scale than asked for together with the others."""
    gaps_s = per_video(environment, lambda video: 4.0)
    first, later = [KITE, "white cat snow"], ["boat sea"]
    together = [each for each in find_matches(environment, [*first, *later], 4, gaps_s) if each.query in later]
    beside = find_matches(environment, later, 4, gaps_s, first)
    alone = find_matches(environment, later, 4, gaps_s)
    assert beside == together
    assert [each.similarity for each in alone] != [each.similarity for each in together]
