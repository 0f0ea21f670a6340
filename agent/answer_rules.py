"""Rules by which a run ends with an answer, or without one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

from kinodex.agent.errors import BadSettings
from kinodex.index.flags import Flag

Declining = Literal["allowed", "later", "never"]


@dataclass(frozen=True, slots=True)
class AnswerRules:
    """The rules by which a run ends.

    Without `early_insufficient` a search goes on as long as something is left to look at and a budget allows it: a
    reply that gives up is not accepted before. With `force_choice` it never is: an answer has to be chosen. None leaves
    it to the agent: those of papers choose one of a question's options, as their papers do. With `verify` a second
    look that is shown the evidence of an answer and nothing else must come to the same answer (`kinodex.agent.ask`).
    """

    __pydantic_config__: ClassVar = {"extra": "forbid"}
    force_choice: Annotated[
        bool | None,
        Flag(
            "An answer has to be chosen, and none may be insufficient_evidence; without it, as each agent's paper.",
            "--force-choice/--no-force-choice",
            is_rare=True,
        ),
    ] = None
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

    def of_agent(self, *, chooses: bool) -> AnswerRules:
        """Return the rules of an agent's run; `chooses` says if it names an option by its paper.

        >>> AnswerRules().of_agent(chooses=True).force_choice
        True
        """
        if self.force_choice is not None:
            return self
        return replace(self, force_choice=chooses and not self.early_insufficient)

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
