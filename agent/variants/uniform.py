"""The first control: a few equally spaced frames, one call, no search."""

from __future__ import annotations

from dataclasses import dataclass

from agent.answer import Answer
from agent.coverage import spread
from agent.model import ShownFrame
from agent.requests.answers import AnswerFrames
from agent.session import Session
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
    frames = _spaced_frames(session, parameters.frames if left is None else min(parameters.frames, left))
    request = AnswerFrames(question=session.question, videos=session.environment.videos, frames=frames)
    return await session.conclude(request)


def _spaced_frames(session: Session, count: int) -> tuple[ShownFrame, ...]:
    environment = session.environment
    total_s = sum(video.duration_s for video in environment.videos)
    frames: list[ShownFrame] = []
    passed_s = 0.0
    for video in environment.videos:
        upto = round(count * (passed_s + video.duration_s) / total_s)
        share = upto - round(count * passed_s / total_s)
        spaced_s = spread(video.start_s, video.end_s, environment.times(video.video_id), share)
        frames += environment.frames(video.video_id, spaced_s)
        passed_s += video.duration_s
    return tuple(frames)


UNIFORM = Variant(
    "uniform",
    "control: a few equally spaced frames and one call",
    uniform,
    lambda longest_s: UniformParameters(),
    roles=("vision",),
)
