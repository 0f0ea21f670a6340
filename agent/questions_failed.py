"""The error of many questions of which some got no answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kinodex.agent.answer import Answer
from kinodex.agent.errors import AgentError


class QuestionsFailed(AgentError):
    """Some of many questions got no answer. `answers` has those of the others, None in the places of these.

    `errors` are by the number of the question, from 0; questions that were not begun any more have none.
    """

    def __init__(
        self, message: str, answers: Sequence[Answer | None] = (), errors: Mapping[int, Exception] | None = None
    ) -> None:
        super().__init__(message)
        self.answers, self.errors = tuple(answers), dict(errors or {})
