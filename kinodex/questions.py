"""Questions of requests, as agents are asked them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kinodex.jobs.errors import UsageError
from kinodex.requests import Ask, Ground

if TYPE_CHECKING:
    from kinodex.agent.protocol.question import Question


def question_of(request: Ask) -> Question:
    """Return the question of a request; raises BadQuestion for options that make no sense."""
    from kinodex.agent.protocol.question import Question

    return Question(request.question, request.options, earlier=request.earlier)


def question_for(request: Ground) -> Ask:
    """Return the question by which an agent is asked for ranges; raises UsageError for a place to look in."""
    from kinodex.jobs.grounding.agent import grounding_question

    if request.in_ != "all":
        raise UsageError("got a place to look in with an agent, which decides by itself; leave one of them out")
    return Ask(
        question=grounding_question(request.text).text,
        videos=request.videos,
        where=request.where,
        agent=request.agent,
        budget=request.budget,
    )
