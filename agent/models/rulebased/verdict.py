"""Verdicts of the built-in model on frames or notes, and the reply that a verdict becomes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agent.core.question import Question
from agent.models.rulebased.statements import choices, cloze_statements

SOON_S = 60.0
"""The reach of "after" and "before" from their moment."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The best choice (None: nothing bears on the question), its score and its lead over the second.

    `evidence` holds the numbers, from 1, of the frames or notes that show it. Frames are judged in deviations, notes
    by the share of words found.
    """

    choice: int | None = None
    score: float = 0.0
    lead: float = 0.0
    evidence: tuple[int, ...] = ()


def to_reply(question: Question, verdict: Verdict, times_s: Sequence[float]) -> dict[str, Any]:
    """Turn a verdict into a `Conclusion` or `Decision` as JSON values.

    `times_s` are those of all frames or notes that were judged.
    """
    if verdict.choice is None:
        return {"action": "insufficient_evidence"}
    named = choices(question)
    letter = question.lettered[verdict.choice][0] if question.options else None
    text = (
        named[verdict.choice]
        if named
        else f"{cloze_statements(question).subject} at {times_s[verdict.evidence[0] - 1]:.1f} s"
    )
    return {"action": "answer", "option": letter, "answer": text, "evidence": verdict.evidence}
