"""Moment samples: the part that a search may see, and their checks."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from kinodex.jobs.eval.samples import BadRow, MomentQuery, MomentSample, check_range

SAMPLE = MomentSample(
    "7", "own", "a dog eats", "a.mp4", (("a.mp4", 1.0, 2.0), ("b.mp4", 3.0, 4.0)), (1.0, 2.0), Path("dog.png")
)


def test_a_query_has_nothing_of_what_is_true() -> None:
    assert SAMPLE.query == MomentQuery("a dog eats", "a.mp4", Path("dog.png"))
    assert {field.name for field in fields(MomentQuery)} == {"text", "video", "image"}


def test_videos_of_a_sample_are_named_once() -> None:
    assert SAMPLE.videos == ("a.mp4", "b.mp4")


def test_samples_without_moments_are_known_only_if_the_moment_is_absent() -> None:
    assert SAMPLE.known
    assert not MomentSample("7", "own", "a dog", None, ()).known
    assert MomentSample("7", "own", "a dog", None, (), absent=True).known


@pytest.mark.parametrize("ends", [(2.0, 2.0), (-0.5, 3.0), (4.0, 3.0)])
def test_ranges_end_after_they_begin(ends: tuple[float, float]) -> None:
    with pytest.raises(BadRow, match=r"span: got"):
        check_range("span", *ends)
    assert check_range("span", 0.0, 0.5) == (0.0, 0.5)
