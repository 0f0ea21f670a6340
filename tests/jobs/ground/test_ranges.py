"""Ranges grown around peaks of evidence, bridged over short gaps, and cut at shot borders that are near."""

from __future__ import annotations

import numpy as np

from kinodex.jobs.ground import Evidence, EvidenceRange, evidence_ranges


def evidence(*deviations: float) -> Evidence:
    start_s, end_s = (np.arange(len(deviations), dtype=np.float64) + shift for shift in (0, 1))
    by_words = np.zeros(len(deviations), bool)
    return Evidence("v", start_s, end_s, np.array(deviations, np.float64), by_words)


def times(found: list[EvidenceRange]) -> list[tuple[float, float]]:
    return [(each.start_s, each.end_s) for each in found]


def test_a_range_goes_on_while_the_evidence_keeps_up_with_its_peak() -> None:
    found = evidence_ranges(evidence(0, 1, 8, 10, 9, 1, 0, 0, 0, 6, 5, 0), [], 5)
    assert times(found) == [(2.0, 5.0), (9.0, 11.0), (1.0, 2.0), (5.0, 6.0)]
    assert [each.deviation for each in found] == [10.0, 6.0, 1.0, 1.0]


def test_only_so_many_ranges_and_none_without_evidence() -> None:
    assert times(evidence_ranges(evidence(0, 9, 0, 0, 0, 8, 0), [], 1)) == [(1.0, 2.0)]
    assert evidence_ranges(evidence(0, -1, -np.inf), [], 5) == []


def test_a_short_weak_stretch_is_bridged_and_a_long_one_ends_the_range() -> None:
    assert times(evidence_ranges(evidence(10, 2, 2, 9, 0), [], 1)) == [(0.0, 4.0)]
    assert times(evidence_ranges(evidence(10, 2, 2, 2, 9, 0), [], 1)) == [(0.0, 1.0)]


def test_an_end_moves_to_a_shot_border_that_is_near_and_never_past_the_peak() -> None:
    peaked = evidence(0, 0, 9, 10, 9, 0, 0, 0)
    assert times(evidence_ranges(peaked, [0.0, 1.2, 6.4], 1)) == [(1.2, 6.4)]
    assert times(evidence_ranges(peaked, [0.0, 8.0], 1)) == [(2.0, 5.0)]
    assert times(evidence_ranges(peaked, [3.0, 4.0], 1)) == [(3.0, 4.0)]
    assert times(evidence_ranges(peaked, [3.5], 1)) == [(2.0, 5.0)]


def test_ranges_never_overlap_even_where_borders_draw_them_together() -> None:
    found = evidence_ranges(evidence(10, 10, 0, 0, 0, 9, 9), [0.0, 3.0, 7.0], 5)
    assert times(found) == [(0.0, 3.0), (5.0, 7.0)]
    for one in found:
        assert all(one is two or one.end_s <= two.start_s or two.end_s <= one.start_s for two in found)
