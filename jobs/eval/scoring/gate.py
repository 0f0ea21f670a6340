"""Figures of the gate (`--verify`): right answers that their evidence does not show, and evidence that suffices.

A right answer to which a second look at its evidence alone did not come was not read off what it cites: it was known,
guessed, or seen elsewhere in the video.
"""

from __future__ import annotations

from kinodex.jobs.eval.scoring.answers import ScoredResult

RIGHT = 0.5
"""An answer with a higher score is right; judged ones from 2 of 3."""


def right_without_evidence(result: ScoredResult) -> bool | None:
    """Return True for a right answer that is not supported; None where the gate was off or came to nothing."""
    alone = evidence_suffices(result)
    return None if alone is None else (result.score or 0.0) > RIGHT and not alone


def evidence_suffices(result: ScoredResult) -> bool | None:
    """Return True for a right answer to which its evidence alone leads.

    Return None where the gate was off or came to nothing.
    """
    if result.record.supported is None or result.score is None:
        return None
    return result.score > RIGHT and result.record.supported
