"""Evidence against true ranges."""

from __future__ import annotations

import pytest

from kinodex.agent.answer import Evidence
from kinodex.jobs.eval.score import EvidenceScore, score_evidence

TRUE = [(10.0, 20.0)]


@pytest.mark.parametrize(
    ("evidence", "hit", "overlap"),
    [
        ([("v", 10, 20)], True, 1.0),
        ([("v", 15, 25)], True, 5 / 15),
        ([("v", 12, 13), ("v", 12.5, 14)], True, 2 / 10),
        ([("v", 0, 100)], True, 0.1),
        ([("v", 20, 30)], False, 0.0),
        ([("other", 10, 20)], False, 0.0),
        ([("v", 10, 20), ("other", 0, 10)], True, 0.5),
        ([], False, 0.0),
    ],
)
def test_evidence_hits_where_it_lies_in_a_true_range_and_overlaps_by_its_share(evidence, hit, overlap) -> None:
    found = score_evidence([Evidence(*each) for each in evidence], {"v"}, TRUE)
    assert found.hit == hit
    assert found.overlap == pytest.approx(overlap)


def test_true_ranges_that_overlap_count_once() -> None:
    evidence = [Evidence("v", 0, 10)]
    assert score_evidence(evidence, {"v"}, [(0.0, 8.0), (2.0, 10.0)]) == EvidenceScore(True, 1.0)


def test_of_several_videos_one_that_shows_it_is_enough() -> None:
    assert score_evidence([Evidence("b", 10, 20)], {"a", "b"}, TRUE) == EvidenceScore(True, 1.0)
