"""Rules by which a run ends with an answer, or without one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from kinodex.agent.errors import BadSettings
from kinodex.index.flags import Flag

Declining = Literal["allowed", "later", "never"]


@dataclass(frozen=True, slots=True)
class AnswerRules:
    """The rules by which a run ends.

    Without `early_insufficient` a search goes on as long as something is left to look at and a budget allows it: a
    reply that gives up is not accepted before. With `force_choice` it never is: an answer has to be chosen, as the
    papers' own evaluations demand. With `verify` a second look that is shown the evidence of an answer and nothing
    else must come to the same answer (`kinodex.agent.ask`).
    """

    __pydantic_config__: ClassVar = {"extra": "forbid"}
    force_choice: Annotated[
        bool,
        Flag("An answer has to be chosen, as in the papers' evaluations; no insufficient_evidence.", is_rare=True),
    ] = False
    early_insufficient: Annotated[
        bool, Flag("Let a model find the evidence insufficient while there is more to look at.", is_rare=True)
    ] = False
    verify: Annotated[
        bool,
        Flag("A second look at an answer's evidence alone must come to the same answer; else search on.", is_rare=True),
    ] = False

    def __post_init__(self) -> None:
        if self.force_choice and self.early_insufficient:
            raise BadSettings("got force_choice and early_insufficient, which contradict each other; give one of them")

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
