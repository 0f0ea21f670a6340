"""Control: an option by chance, no model at all: every benchmark's accuracy is to be compared with it."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from kinodex.agent.answer import Answer
from kinodex.agent.requests.answer import Conclusion
from kinodex.agent.session import Session
from kinodex.agent.variants.base import Variant


@dataclass(frozen=True, slots=True)
class ChanceParameters:
    """`seed` and the question's words choose the option, so that a run can be repeated."""

    seed: int = 0
    """Chooses the option together with the question's words."""
    rounds: int = 1
    """It asks no model: one round."""


async def chance(session: Session, parameters: ChanceParameters) -> Answer:
    """Choose one of the options, all equally likely; without options there is nothing to choose from."""
    session.account.begin_round()
    question = session.question
    if not question.options:
        return session.answer(None, (), "insufficient_evidence", "no options to choose from")
    videos = " ".join(video.video_id for video in session.environment.videos)
    letter, _ = Random(f"{parameters.seed} {videos} {question.text}").choice(question.lettered)
    reply = Conclusion(action="answer", option=letter, answer=None, evidence=[])
    return session.answer(reply, (), "answered", "chosen by chance")


CHANCE = Variant(
    "random",
    "control: one of the options by chance, without a model",
    chance,
    lambda longest_s: ChanceParameters(),
    roles=(),
    sees_video=False,
    plain="Picks one of the options by chance. For comparison only.",
)
