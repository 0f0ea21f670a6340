"""Right answers with and without support, of those that the gate looked at."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kinodex.jobs.eval.score import evidence_suffices, right_without_evidence


@pytest.mark.parametrize(
    ("score", "supported", "without", "alone"),
    [
        (1.0, True, False, True),
        (1.0, False, True, False),
        (0.0, True, False, False),
        (0.0, False, False, False),
        (2 / 3, False, True, False),
        (1.0, None, None, None),
        (None, True, None, None),
    ],
)
def test_right_answers_are_told_by_their_support(
    score: float | None, supported: bool | None, without: bool | None, alone: bool | None
) -> None:
    result: Any = SimpleNamespace(score=score, record=SimpleNamespace(supported=supported))
    assert (right_without_evidence(result), evidence_suffices(result)) == (without, alone)
