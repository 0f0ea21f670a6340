"""Options about the ending of runs, shared by the commands that ask."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from agent.core.answer_rules import AnswerRules

ForceChoiceOption = Annotated[
    bool,
    typer.Option(
        "--force-choice", help="An answer has to be chosen, as in the papers' evaluations; no insufficient_evidence."
    ),
]
EarlyInsufficientOption = Annotated[
    bool,
    typer.Option(
        "--early-insufficient", help="Let a model find the evidence insufficient while there is more to look at."
    ),
]
VerifyOption = Annotated[
    bool,
    typer.Option(
        "--verify", help="A second look at an answer's evidence alone must come to the same answer; else search on."
    ),
]
AnywayOption = Annotated[
    bool, typer.Option("--anyway", help="Ask the built-in model though it does not know what this library shows.")
]


def answer_rules(force_choice: bool, early_insufficient: bool, verify: bool = False) -> AnswerRules:
    """Make the rules of a run; raise `UsageError` for two options that contradict each other."""
    from agent.core.answer_rules import AnswerRules
    from jobs.errors import UsageError

    if force_choice and early_insufficient:
        raise UsageError("got --force-choice and --early-insufficient, which contradict each other; give one of them")
    return AnswerRules(force_choice, early_insufficient, verify)
