"""Control: a few equally spaced frames, one call, no search.

With a transcript, the lines at the times of the frames are given too: the official rule of Video-MME with subtitles;
so is text on screen at these times, if the library holds it. In a video without pictures as many captions, equally
spaced, are read in the place of frames.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kinodex.agent.answer import Answer
from kinodex.agent.protocol.notes import Note
from kinodex.agent.protocol.videos import EXACT_S
from kinodex.agent.requests.answer import AnswerFrames, AnswerNotes
from kinodex.agent.session import Session
from kinodex.agent.tools.captions import caption_frames, in_order
from kinodex.agent.tools.uniform import uniform_frames, uniform_times
from kinodex.agent.variants.base import Variant, check_at_least
from kinodex.index.kinds import QUOTED_KINDS


@dataclass(frozen=True, slots=True)
class UniformParameters:
    """`frames` are shown in all, shared out among the videos by duration."""

    frames: int = 16
    """Frames shown in all, equally spaced."""
    rounds: int = 1
    """It is one call, so one round."""

    def __post_init__(self) -> None:
        check_at_least(self, frames=1)


async def uniform(session: Session, parameters: UniformParameters) -> Answer:
    """Answer from equally spaced frames; of several videos, each gets its share."""
    session.account.begin_round()
    environment, left = session.environment, session.account.frames_left
    times_s = uniform_times(environment, parameters.frames if left is None else min(parameters.frames, left))
    frames, notes = uniform_frames(environment, times_s), await _notes(session, times_s)
    question, videos = session.question, environment.videos
    if not frames:
        return await session.conclude(AnswerNotes(question=question, videos=videos, notes=notes))
    return await session.conclude(AnswerFrames(question=question, videos=videos, frames=frames, notes=notes))


async def _notes(session: Session, times_s: Mapping[str, Sequence[float]]) -> tuple[Note, ...]:
    """Return the lines that are said and shown at these times, and the captions of videos without pictures."""
    environment = session.environment
    times = [(video_id, time_s) for video_id, each in times_s.items() for time_s in each]
    written = await caption_frames(session, [each for each in times if not environment.pictured(each[0])])
    quoted = [line for video_id, time_s in times for line in environment.quoted(video_id, time_s, time_s + EXACT_S)]
    session.account.count_screen_text(quoted)
    return in_order([*written.values(), *quoted])


UNIFORM = Variant(
    "uniform",
    "control: a few equally spaced frames and one call",
    uniform,
    lambda longest_s: UniformParameters(),
    roles=("vision", "policy"),
    uses=QUOTED_KINDS,
    plain="Looks at a few pictures, evenly spaced, once. Quick and cheap, for comparison.",
)
