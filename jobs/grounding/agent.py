"""Grounding by an agent: its evidence is the ranges, and "insufficient evidence" says that there are none."""

from __future__ import annotations

from kinodex.agent.answer import Answer
from kinodex.agent.protocol.question import Question
from kinodex.agent.videos.environment import Environment
from kinodex.index.library import LibraryReader
from kinodex.index.rows import Basis
from kinodex.jobs.export.moments import Moment
from kinodex.jobs.grounding.result import MOST, Grounding
from kinodex.jobs.models import ModelChoice, chosen_models

QUESTION = "When do we see the following: {text}?"
EVIDENCE = "evidence"


def grounding_question(text: str) -> Question:
    """Return the question by which an agent is asked for the ranges of a text."""
    return Question(QUESTION.format(text=text.strip().rstrip(".?!")))


def text_of(question: str) -> str:
    """Return the text of a grounding's question; any other question is its own."""
    before, after = QUESTION.split("{text}")
    is_grounding = question.startswith(before) and question.endswith(after)
    return question[len(before) : len(question) - len(after)] if is_grounding else question


def grounding_of(library: LibraryReader, text: str, answer: Answer, by: str, most: int) -> Grounding:
    """Return the ranges that an agent's answer cites, at most `most`, in order of video and time.

    An agent does not rank them.

    An event is there if the agent answered and cited something, and it is not if the agent says so. All that an answer
    without citations was shown is no range of the event: such an answer, one that a budget ended and an invalid one are
    no verdict.
    """
    present = answer.status == "answered" and answer.evidence_cited and bool(answer.evidence)
    said = True if present else False if answer.status == "insufficient_evidence" else None
    basis: Basis = "ranking" if said is None else "verified"
    candidates = tuple(
        Moment(library.video(each.video_id), each.start_s, each.end_s, text, None, EVIDENCE, basis=basis)
        for each in answer.evidence[:most]
    )
    reason = answer.reason or (answer.text or answer.status.replace("_", " "))
    return Grounding(text, candidates, said, by, basis, reason=reason)


async def ground_with(
    library: LibraryReader,
    environment: Environment,
    text: str,
    agent: str,
    choice: ModelChoice,
    *,
    most: int = MOST,
) -> Grounding:
    """Ask an agent for the ranges of a text in the environment's videos; raises as `kinodex.agent.ask.ask` does."""
    from kinodex.agent.ask import ask  # it knows all agents

    async with chosen_models(choice) as models:
        question, models_by_role = grounding_question(text), models(environment)
        answer = await ask(question, environment, models_by_role, agent=agent)
    return grounding_of(library, text, answer, agent, most)
