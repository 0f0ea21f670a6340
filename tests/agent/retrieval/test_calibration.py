"""The scale of matches: deviations from the median, and the deviation that is as rare as a chance."""

from __future__ import annotations

import numpy as np
import pytest

from kinodex.agent.matches import calibrate, deviation_of_chance, robust_deviations


def test_similarities_tell_a_match_from_noise() -> None:
    noise = np.random.default_rng(0).normal(size=3600)
    assert calibrate(noise).max() < 0.4
    assert np.median(calibrate(noise)) < 0.01
    assert calibrate(np.asarray([12.0]))[0] > 0.6
    strong = calibrate(np.asarray([-np.inf, 30.0, 60.0, 120.0, 1e9]))
    assert strong[0] == 0.0
    assert (np.diff(strong) > 0).all()
    assert strong[-1] <= 1.0


def test_the_best_of_unrelated_frames_and_a_line_as_rare_by_chance_are_worth_the_same() -> None:
    noise = np.random.default_rng(1).normal(0.2, 0.03, size=(4000, 1))
    best = calibrate(robust_deviations(noise, noise)).max()
    line = calibrate(np.asarray([deviation_of_chance(1 / 4000)]))[0]
    assert best == pytest.approx(line, abs=0.03)


def test_a_chance_of_nothing_is_a_number_and_certainty_is_no_match() -> None:
    assert deviation_of_chance(1.0) == -np.inf
    assert deviation_of_chance(0.5) == pytest.approx(0.0)
    assert 30 < deviation_of_chance(0.0) < 40


def test_queries_share_one_scale_and_what_never_differs_has_no_deviation() -> None:
    cosines = np.array([[0.1, 0.1], [0.2, 0.1], [0.3, 0.1], [0.9, 0.2]])
    found = robust_deviations(cosines, cosines)
    assert found[3, 0] > found[3, 1] > 0
    flat = np.full((5, 1), 0.3)
    assert (robust_deviations(flat, flat) == 0).all()
