"""Hits by video in the order of each video's best, with strengths that can be compared within a kind."""

from __future__ import annotations

import pytest

from kinodex.index.rows import Hit
from kinodex.web.search import MOST_OF_A_VIDEO, Moment, best_scores, groups_view, strength
from tests.support.libraries.viewer_library import library_of_titles


def frame(video: str, time_s: float, score: float) -> Moment:
    hit = Hit(video, time_s, time_s + 1, int(time_s), score, None, "frame")
    return Moment(hit, frame=hit)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return library_of_titles(tmp_path_factory.mktemp("titles") / "library", 3)


def no_frames(video_id):
    return [], []


def test_videos_come_by_their_best_hit_and_one_does_not_crowd_out_the_others(library):
    first, second, _ = (row.video_id for row in library.videos())
    many = [frame(second, 3.0 * n, 0.4 - n / 1000) for n in range(MOST_OF_A_VIDEO + 5)]
    found = groups_view(library, [*many, frame(first, 1.0, 0.2)], "snow", "words", no_frames)
    assert [(group["title"], len(group["hits"]), group["more"]) for group in found["groups"]] == [
        ("film 0001", MOST_OF_A_VIDEO, 5),
        ("film 0000", 1, 0),
    ]
    assert found["count"] == MOST_OF_A_VIDEO + 1
    alone = groups_view(library, many, "snow", "words", no_frames)
    assert (alone["count"], alone["groups"][0]["more"]) == (len(many), 0)


def test_a_strength_is_the_share_of_the_best_of_its_kind(library):
    line = Hit("v", 3.0, 4.0, None, 8.0, "snow", "transcript")
    weak = Hit("v", 9.0, 10.0, None, 2.0, "snow", "transcript")
    best = frame("v", 1.0, 0.3)
    both = Moment(best.hit, frame=Hit("v", 5.0, 6.0, 5, 0.15, None, "frame"), line=line)
    bests = best_scores([best, both, Moment(weak, line=weak)])
    assert bests == {"frame": 0.3, "transcript": 8.0}
    assert [strength(each, bests) for each in (best, both, Moment(weak, line=weak))] == [1.0, 1.0, 0.25]
    below = frame("v", 1.0, -0.2)
    assert strength(below, best_scores([below])) == 0.0


def test_a_fused_rank_is_never_the_strength_and_only_a_picture_has_a_similarity(library):
    video = library.videos()[0].video_id
    fused = Hit(video, 1.0, 2.0, 1, 0.0164, "snow", "both")
    moment = Moment(
        fused, frame=frame(video, 1.0, 0.31).hit, line=Hit(video, 1.0, 2.0, None, 5.0, "snow", "transcript")
    )
    (hit,) = groups_view(library, [moment], "snow", "words", no_frames)["groups"][0]["hits"]
    assert (hit["strength"], hit["similarity"], hit["why"]) == (1.0, 0.31, "both seen and said: snow")
