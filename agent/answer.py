"""The answer of an agent, and what it cost."""

from __future__ import annotations

import string
from dataclasses import dataclass
from typing import Literal

from kinodex.agent.evidence import Evidence
from kinodex.agent.limits.ledger import Ledger

Status = Literal["answered", "insufficient_evidence", "evidence_only", "budget_exhausted", "invalid"]


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer with its status, what it rests on and what it cost.

    `evidence_only` marks the moments that fit an open question best, found by a model that writes no sentence.

    `option` is the index of the chosen option. `budget_exhausted` marks the best answer so far when a
    budget (named in `reason`) ended the search; text and option are None if no budget was left to
    ask for one. An `answered` one with a `reason` is the best so far too, where the model could not
    decide how to go on, or rests on words that were read in the place of pictures.
    """

    status: Status
    text: str | None
    option: int | None
    evidence: tuple[Evidence, ...]
    rounds: int
    ledger: Ledger
    reason: str = ""
    senseless: bool = False
    """True if the run ended because no reply of its models could be used (`reason` says which model and why)."""
    evidence_cited: bool = True
    """False if the reply named nothing that was shown: then `evidence` is all that the model had before it."""

    supported: bool | None = None
    """With the gate (`AnswerRules.verify`): True if a second look at `evidence` alone came to it; None without one."""
    unverified: str = ""
    """With the gate: the reason why no second look came to anything, in one line; "" if one did."""

    @property
    def letter(self) -> str | None:
        return None if self.option is None else string.ascii_uppercase[self.option]
