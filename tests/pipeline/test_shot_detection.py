"""Shots from the change between neighbouring vectors; windows where there are none."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from kinodex.pipeline.sample import ChunkSummary, SampledFrame, Segment, find_segments
from tests.support.ffmpeg import ColourTower, read_whole


def times(count: int) -> list[float]:
    return [float(k) for k in range(count)]


def test_cuts_make_shots() -> None:
    distances = [0.01, 0.02, 0.5, 0.01, 0.02, 0.6, 0.01]
    assert find_segments(times(8), distances, 8.0, 10.0) == [
        Segment(0.0, 3.0, "shot"),
        Segment(3.0, 6.0, "shot"),
        Segment(6.0, 8.0, "shot"),
    ]


def test_a_still_video_is_cut_into_windows() -> None:
    assert find_segments(times(25), [0.001] * 24, 25.0, 10.0) == [
        Segment(0.0, 10.0, "window"),
        Segment(10.0, 20.0, "window"),
        Segment(20.0, 25.0, "window"),
    ]


def test_one_frame_is_one_window() -> None:
    assert find_segments([4.5], [], 4.6, 10.0) == [Segment(4.5, 4.6, "window")]


def test_a_long_shot_is_cut_into_windows_and_its_neighbours_are_not() -> None:
    distances = [0.01] * 99
    distances[4] = 0.5
    segments = find_segments(times(100), distances, 100.0, 10.0)
    assert segments[0] == Segment(0.0, 5.0, "shot")
    assert {segment.kind for segment in segments[1:]} == {"window"}
    assert segments[1] == Segment(5.0, 15.0, "window")
    assert segments[-1] == Segment(95.0, 100.0, "window")


def test_noise_without_cuts_has_no_shots_and_constant_cutting_has() -> None:
    dice = np.random.default_rng(5)
    quiet = find_segments(times(200), list(dice.normal(0.04, 0.005, 199)), 200.0, 10.0)
    assert {segment.kind for segment in quiet} == {"window"}
    restless = find_segments(times(50), list(dice.normal(0.6, 0.05, 49)), 50.0, 10.0)
    assert [segment.kind for segment in restless] == ["shot"] * 50


def test_a_gap_of_years_makes_no_empty_windows() -> None:
    segments = find_segments([0.0, 1.0, 3e7, 3e7 + 1], [0.0, 0.0, 0.0], 3e7 + 2, 10.0)
    assert len(segments) == 2
    assert (segments[0].start_s, segments[-1].end_s) == (0.0, 3e7 + 2)


@pytest.mark.parametrize("seed", range(5))
def test_segments_always_cover_everything_once(seed: int) -> None:
    dice = np.random.default_rng(seed)
    moments = np.cumsum(dice.exponential(2.0, 80)).tolist()
    segments = find_segments(moments, dice.exponential(0.08, 79).tolist(), moments[-1] + 0.5, 5.0)
    assert (segments[0].start_s, segments[-1].end_s) == (moments[0], moments[-1] + 0.5)
    assert all(one.end_s == other.start_s for one, other in pairwise(segments))
    assert all(segment.start_s < segment.end_s for segment in segments)


def test_distances_must_fit_the_frames() -> None:
    with pytest.raises(ValueError, match="one distance fewer"):
        find_segments(times(3), [0.1], 3.0, 10.0)


def test_the_scenes_of_a_real_film(media: Path) -> None:
    """The counter clip changes its background at 1.0 and 2.0 s."""
    path = media / "awkward" / "pyscenedetect__counter.mp4"
    assert segments_of(*read_whole(path, fps=5.0)) == [
        Segment(0.0, 1.0, "shot"), Segment(1.0, 2.0, "shot"), Segment(2.0, 3.0, "shot"),
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["pyscenedetect__testvideo.mp4", "intel__one-by-one-person-detection.mp4"])
def test_segments_of_a_real_film_cover_it(media: Path, name: str) -> None:
    summary, pictures = read_whole(media / "clips" / name)
    segments = segments_of(summary, pictures)
    assert (segments[0].start_s, segments[-1].end_s) == (summary.start_s, summary.end_s)
    assert all(one.end_s == other.start_s for one, other in pairwise(segments))


def segments_of(summary: ChunkSummary, pictures: Sequence[SampledFrame]) -> list[Segment]:
    vectors = ColourTower().embed(np.stack([picture.model_input for picture in pictures])).astype(np.float64)
    distances = 1 - np.sum(vectors[1:] * vectors[:-1], axis=1)
    return find_segments([picture.time_s for picture in pictures], distances.tolist(), summary.end_s, 10.0)
