"""Figures of the gate (`--verify`): right answers that their evidence does not show, and evidence that suffices.

A right answer to which a second look at its evidence alone did not come was not read off what it cites: it was known,
guessed, or seen elsewhere in the video.
"""

from __future__ import annotations

from jobs.evaluation.score.scorers import ScoredResult

RIGHT = 0.5
"""An answer with a higher score is right; judged ones from 2 of 3."""


def right_without_evidence(result: ScoredResult) -> bool | None:
    """True for a right answer that is not supported; None where the gate was off or came to nothing."""
    return None if _unknown(result) else _is_right(result) and not result.record.supported


def evidence_suffices(result: ScoredResult) -> bool | None:
    """True for a right answer to which its evidence alone leads; None where the gate was off or came to nothing."""
    return None if _unknown(result) else _is_right(result) and bool(result.record.supported)


def _unknown(result: ScoredResult) -> bool:
    return result.record.supported is None or result.score is None


def _is_right(result: ScoredResult) -> bool:
    return (result.score or 0.0) > RIGHT
