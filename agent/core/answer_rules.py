"""When a model may say that the evidence is insufficient: the rules of a run, and what a request allows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Declining = Literal["allowed", "later", "never"]
"""May a reply say "insufficient_evidence"? "later": not while there is something left to look at; "never": not in this
run."""

INSUFFICIENT = "insufficient_evidence"


def allowed_actions(actions: Sequence[str], declining: Declining) -> tuple[str, ...]:
    """The actions of a reply without "insufficient_evidence" where that is not allowed."""
    return tuple(each for each in actions if each != INSUFFICIENT or declining == "allowed")


@dataclass(frozen=True, slots=True)
class AnswerRules:
    """The rules by which a run ends.

    Without `early_insufficient` a search goes on as long as something is left to look at and a budget allows it: a
    reply that gives up is not accepted before. With `force_choice` it never is: an answer has to be chosen, as the
    papers' own evaluations demand. With `verify` a second look that is shown the evidence of an answer and nothing
    else must come to the same answer (`agent.verification`).
    """

    force_choice: bool = False
    early_insufficient: bool = False
    verify: bool = False

    @property
    def while_searching(self) -> Declining:
        """Tell what a request allows that can go on with the search."""
        if self.force_choice:
            return "never"
        return "allowed" if self.early_insufficient else "later"

    @property
    def at_the_end(self) -> Declining:
        """Tell what a request for the answer allows when the search is over."""
        return "never" if self.force_choice else "allowed"


USUAL = AnswerRules()
