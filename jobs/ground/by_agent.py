"""Grounding by an agent: its evidence is the ranges, and "insufficient evidence" says that there are none."""

from __future__ import annotations

from agent.answer import Answer
from agent.ask_questions import ask
from agent.core.budget import Budget
from agent.core.question import Question
from agent.environment import Environment
from index.library_reader import LibraryReader
from jobs.export.moments.moment import Moment
from jobs.ground.ground import MOST, Grounding
from jobs.model_choice import ModelChoice, chosen_models

QUESTION = "When do we see the following: {text}?"
EVIDENCE = "evidence"


def grounding_question(text: str) -> Question:
    """The question by which an agent is asked for the ranges of a text."""
    return Question(QUESTION.format(text=text.strip().rstrip(".?!")))


def text_of(question: str) -> str:
    """The text of a grounding's question; any other question is its own."""
    before, after = QUESTION.split("{text}")
    is_grounding = question.startswith(before) and question.endswith(after)
    return question[len(before) : len(question) - len(after)] if is_grounding else question


def grounding_of(library: LibraryReader, text: str, answer: Answer, by: str, most: int) -> Grounding:
    """The ranges that an agent's answer cites, at most `most`, in order of video and time: an agent does not rank them.

    An event is there if the agent answered and cited something. All that an answer without citations was shown is no
    range of the event: such an answer, one that a budget ended and an invalid one have candidates, and no range.
    """
    present = answer.status == "answered" and answer.evidence_cited and bool(answer.evidence)
    candidates = tuple(
        Moment(library.video(each.video_id), each.start_s, each.end_s, text, None, EVIDENCE)
        for each in answer.evidence[:most]
    )
    reason = answer.reason or (answer.text or answer.status.replace("_", " "))
    return Grounding(text, candidates, present, by, reason=reason)


async def ground_with(
    library: LibraryReader,
    environment: Environment,
    text: str,
    agent: str,
    choice: ModelChoice,
    *,
    most: int = MOST,
    budget: Budget | None = None,
) -> Grounding:
    """Ask an agent for the ranges of a text in the environment's videos; raises as `agent.ask_questions.ask` does."""
    async with chosen_models(choice) as models:
        question, models_by_role = grounding_question(text), models(environment)
        answer = await ask(question, environment, models_by_role, agent=agent, budget=budget or Budget())
    return grounding_of(library, text, answer, agent, most)
