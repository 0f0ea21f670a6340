"""Hits of several searches are fused by rank, and neighbours of a better hit suppressed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kinodex.index.rows import Hit
from kinodex.index.search.fusion import fuse, fuse_same, shares_words


def frame(time_s: float, video_id: str = "a") -> Hit:
    return Hit(video_id, time_s, time_s + 1.0, int(time_s), 0.5, None, "frames")


def line(start_s: float, end_s: float, video_id: str = "a") -> Hit:
    return Hit(video_id, start_s, end_s, None, 9.0, f"said at {start_s}", "speech")


def test_a_line_that_shares_only_small_words_is_not_fused():
    for query, line, shares in (
        ("a dog on the grass", "The land of the gatekeepers.", False),
        ("a dog on the grass", "Look, the dog lies on a bench!", True),
        ("where is the red kite", "A kite!", True),
        ("the dog", "the land", True),
        ("a boat", "It is a long story.", False),
        ("a pink book in the city at night", "We meet in the morning.", False),
        ("a red car on the road", "That red car!", True),
        ("a red car on the road", "The red one.", True),
        ("a red car on the road", "The one.", False),
        ("小 猫 在 屋顶 上", "屋顶", True),
        ("Wie hoch ist der Turm", "WIE, sagst du?", False),
        ("狗在草地上, 猫在屋顶上, 狗", "草地", True),
    ):
        assert shares_words(query, line) is shares, (query, line)


def test_fusion_by_hand():
    fused = fuse([frame(50.0), frame(10.0), frame(11.0)], [line(9.0, 12.0), line(9.0, 12.0, "b"), line(80.0, 81.0)])
    assert [(hit.video_id, hit.time_s, hit.found_in) for hit in fused] == [
        ("a", 10.0, "several"),
        ("a", 50.0, "frames"),
        ("b", 9.0, "speech"),
        ("a", 11.0, "frames"),
        ("a", 80.0, "speech"),
    ]
    np.testing.assert_allclose([hit.score for hit in fused], [1 / 62 + 1 / 61, 1 / 61, 1 / 62, 1 / 63, 1 / 63])


def test_a_fused_hit_keeps_what_each_search_gave_it():
    seen = Hit("a", 5.0, 6.0, 5, 0.3, None, "frames", cosine=0.3)
    said = Hit("a", 5.0, 7.0, None, 4.5, "a bird", "speech", bm25=4.5)
    described = Hit("a", 4.0, 9.0, None, 2.0, "birds", "captions", cosine=0.1, bm25=2.0)
    (fused,) = fuse([seen], [said], [described])
    assert (fused.cosine, fused.bm25, fused.text) == (0.3, 4.5, "a bird")
    by_words, by_meaning = Hit("a", 4.0, 9.0, None, 2.0, "birds", "captions", bm25=2.0), described
    (row,) = fuse_same([by_words], [replace(by_meaning, bm25=None)])
    assert (row.cosine, row.bm25) == (0.1, 2.0)


def test_a_line_joins_a_frame_within_three_seconds_and_the_one_that_shows_it_before_a_better_one_nearby():
    for time_s, joins in ((6.9, False), (7.0, True), (14.9, True), (15.0, False)):
        assert (fuse([frame(time_s)], [line(10.0, 12.0)])[0].found_in == "several") is joins, time_s
    joined, other = fuse([frame(7.0), frame(5.0)], [line(4.5, 6.0)])
    assert (joined.time_s, joined.text, other.time_s, other.text) == (5.0, "said at 4.5", 7.0, None)
