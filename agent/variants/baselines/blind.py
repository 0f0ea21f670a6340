"""Control: the question alone, no frame. The questions it answers correctly need no video."""

from __future__ import annotations

from dataclasses import dataclass

from kinodex.agent.answer import Answer
from kinodex.agent.requests.answer import Guess
from kinodex.agent.session import Session
from kinodex.agent.variants.base import Variant


@dataclass(frozen=True, slots=True)
class BlindParameters:
    """One call, so one round."""

    rounds: int = 1
    """It is one call, so one round."""


async def blind(session: Session, parameters: BlindParameters) -> Answer:
    """Answer from the words of the question and its options: a guess, without evidence."""
    session.account.begin_round()
    return await session.conclude(Guess(question=session.question, videos=session.environment.videos))


BLIND = Variant(
    "blind",
    "control: the question alone, without any frame",
    blind,
    lambda longest_s: BlindParameters(),
    roles=("policy",),
    needs_language=True,
    sees_video=False,
    plain="Looks at nothing, and guesses from the question alone. For comparison only.",
)
