"""Timelines: what all frames have in common is taken away, and vectors are had between two frames."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kinodex.index.library import Library
from kinodex.jobs.duplicates import Timeline, make_timeline, read_mean, read_timeline
from tests.support.libraries.random_library import SETTINGS, fingerprint, made, write


def test_the_mean_is_taken_away_and_a_frame_that_equals_it_is_nothing() -> None:
    mean = np.array([1.0, 0.0], np.float32)
    line = make_timeline(np.array([0.0, 1.0]), np.array([[2.0, 0.0], [0.0, 3.0]]), mean)
    assert line.units[0].tolist() == [0.0, 0.0]
    assert line.units[1] == pytest.approx([-(0.5**0.5), 0.5**0.5])


def test_a_vector_between_two_frames_is_the_mean_of_both_by_nearness() -> None:
    line = Timeline(np.array([0.0, 2.0, 3.0]), np.eye(3, dtype=np.float32))
    between = line.at(np.array([-1.0, 0.5, 2.0, 9.0]))
    assert between.tolist() == [[1, 0, 0], [0.75, 0.25, 0], [0, 1, 0], [0, 0, 1]]
    assert line.gap_s == 1.5


def test_one_frame_is_the_same_at_all_times() -> None:
    line = Timeline(np.array([4.0]), np.array([[0.6, 0.8]], np.float32))
    assert line.at(np.array([0.0, 9.0])) == pytest.approx(np.array([[0.6, 0.8]] * 2))
    assert line.gap_s == 1.0


def test_timelines_of_a_library(tmp_path: Path) -> None:
    library = Library.create(str(tmp_path / "library"), SETTINGS, fingerprint())
    videos = [made("a", 3, 1), made("b", 9, 2)]
    for video in videos:
        write(library, video)
    mean = read_mean(library, ["b", "a"], None)
    each = [video.vectors.astype(np.float32).mean(axis=0) for video in videos]
    assert mean == pytest.approx(np.mean(each, axis=0), abs=1e-3), "each video counts once, however long"
    line = read_timeline(library, "a", None, mean)
    assert line.times_s.tolist() == [0.0, 1.0, 2.0]
    assert np.linalg.norm(line.units, axis=1) == pytest.approx(np.ones(3))
