"""The first control: a few equally spaced frames, one call, no search."""

from __future__ import annotations

from dataclasses import dataclass

from agent.answer import Answer
from agent.requests.answers import AnswerFrames
from agent.session import Session
from agent.spaced import spaced_frames
from agent.variant import Variant, at_least


@dataclass(frozen=True, slots=True)
class UniformParameters:
    """`frames` is how many are shown, shared out among the videos by duration."""

    frames: int = 16
    rounds: int = 1

    def __post_init__(self) -> None:
        at_least(self, frames=1)


async def uniform(session: Session, parameters: UniformParameters) -> Answer:
    """Answer from equally spaced frames; of several videos, each gets its share."""
    session.account.begin_round()
    left = session.account.frames_left
    frames = spaced_frames(session.environment, parameters.frames if left is None else min(parameters.frames, left))
    request = AnswerFrames(question=session.question, videos=session.environment.videos, frames=frames)
    return await session.conclude(request)


UNIFORM = Variant(
    "uniform",
    "control: a few equally spaced frames and one call",
    uniform,
    lambda longest_s: UniformParameters(),
    roles=("vision",),
)
