"""What is kept of one question put to one contender: the answer, its bill, and what the figures need of its search."""

from __future__ import annotations

from dataclasses import dataclass

from agent.answer import Evidence, Status
from agent.core.budget import Ledger


@dataclass(frozen=True, slots=True)
class Round:
    """One round of a tree search, for the figures of EEA and VCA.

    `intrinsic` and `fused` are the normalised entropies, 0 to 1, of the softmax over the candidates' rewards and over
    their fused scores, both on a scale of 0 to 100; None where the agent has none. `chosen` is the segment that was
    explored next, `best` the one with the highest score; None where the round ended the search.
    """

    intrinsic: float | None
    fused: float | None
    chosen: Evidence | None
    best: Evidence | None


@dataclass(frozen=True, slots=True)
class SampleResult:
    """One question put to one contender. `error` is set, in one line, where no answer came at all; it counts as wrong.

    `visited` are the ranges that were looked at or read, in time order, for grounding.
    """

    contender: str
    item_id: str
    status: Status | None
    option: int | None
    text: str | None
    reason: str
    rounds: int
    ledger: Ledger
    evidence: tuple[Evidence, ...]
    visited: tuple[Evidence, ...] = ()
    search: tuple[Round, ...] = ()
    error: str = ""


@dataclass(frozen=True, slots=True)
class Judgement:
    """A judging model's score, 0 to 3, of one free-form answer; None where it gave no valid one."""

    contender: str
    item_id: str
    judge: str
    score: int | None
    reason: str = ""
