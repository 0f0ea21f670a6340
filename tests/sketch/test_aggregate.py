"""Figures of a simulation, compared on the same questions."""

from __future__ import annotations

import pytest

from tests.sketch.simulation import FRAMES_AT_MOST, Sweep, Trial, TrialResult, aggregate_sweep


def outcome(video: str, right: bool, frames_to_evidence: int | None) -> TrialResult:
    return TrialResult(video, right, frames_to_evidence, frames=12, rounds=2)


def test_figures_are_compared_on_the_same_questions():
    trials = tuple(Trial(x, "world", "eea") for x in ("a", "b"))
    swept = aggregate_sweep(
        Sweep("s", "title", "axis", "choice", "a", trials),
        [
            [outcome("v", True, 6), outcome("v", False, None), outcome("w", False, 12)],
            [outcome("v", True, 6), outcome("v", True, 24), outcome("w", False, 6)],
        ],
    )
    first, second = swept.points
    assert first.difference is None
    assert first.means.found.mean == pytest.approx(2 / 3)
    assert first.means.frames_to_evidence.mean == pytest.approx((6 + FRAMES_AT_MOST + 12) / 3)
    assert second.difference is not None
    assert second.difference.frames_to_evidence.mean == pytest.approx((24 - FRAMES_AT_MOST + 6 - 12) / 3)
    assert second.difference.accuracy.mean == pytest.approx(1 / 3)
    assert second.means.found.high == 1.0
    assert [point.means.found.mean for point in swept.pooled] == pytest.approx([0.0, 1 / 3])


def test_under_conditions_agents_are_compared_at_the_same_place():
    trials = tuple(Trial(x, series, "eea") for x in (1.0, 2.0) for series in ("eea", "vca"))
    outcomes = [[outcome("v", right, 6), outcome("w", right, 6)] for right in (True, False, False, True)]
    swept = aggregate_sweep(Sweep("s", "title", "axis", "conditions", "eea", trials), outcomes)
    differences = [point.difference.accuracy.mean for point in swept.points if point.difference]
    assert differences == [-1.0, 1.0]
    assert swept.pooled == ()
