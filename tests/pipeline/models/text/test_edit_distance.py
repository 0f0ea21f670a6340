"""Edit distance against known pairs and its laws."""

from __future__ import annotations

import pytest

from kinodex.pipeline.models.screen_text import edit_distance, similarity


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [("", "", 0), ("", "abc", 3), ("kitten", "sitting", 3), ("abc", "abc", 0), ("flaw", "lawn", 2), ("ab", "ba", 2)],
)
def test_known_distances_in_both_directions(one, other, expected):
    assert edit_distance(one, other) == edit_distance(other, one) == expected


def test_similarity_is_a_part_of_the_longer_text():
    assert similarity("", "") == similarity("abc", "abc") == 1.0
    assert similarity("abcd", "abcx") == 0.75
    assert similarity("abc", "xyz") == similarity("", "abc") == 0.0
