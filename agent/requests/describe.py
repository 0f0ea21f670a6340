"""Requests to describe videos for any question: their replies are worth storing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pydantic import Field

from kinodex.agent.errors import InvalidReply
from kinodex.agent.protocol.frames import ShownFrame
from kinodex.agent.protocol.notes import Note
from kinodex.agent.protocol.reply import STEP_BY_STEP_TOKENS, Reasoned, Reply, described
from kinodex.agent.protocol.request import Request
from kinodex.agent.protocol.videos import Segment, Video
from kinodex.agent.replies.values import Score
from kinodex.agent.requests.refusals import check_not_refused


class Description(Reply):
    """A caption of frames, and the model's confidence in it, from 0 to 100.

    Descriptions begin with their text: it is what there is to say before the number, and reasons would double the cost.
    """

    model_config = described("What is seen, and how sure the model says it is, from 0 to 100.")

    caption: str = Field(description="the sentences")
    confidence: Score = Field(description="how sure you are that every word is right, a whole number from 0 to 100")


@dataclass(frozen=True, kw_only=True)
class DescribeSegment(Request[Description]):
    """Describe `segment` by some of its frames."""

    Reply = Description
    template: ClassVar[str] = "describe_segment"
    is_kept: ClassVar[bool] = True
    role: ClassVar[str] = "captioner"
    temperature: ClassVar[float] = 0.0
    segment: Segment
    frames: tuple[ShownFrame, ...]

    def interpret(self, reply: Description) -> Description:
        """Multiply the confidence by 100 if it is a fraction: it was asked for in whole numbers from 0 to 100."""
        if not 0 < reply.confidence < 1:
            return reply
        return reply.model_copy(update={"confidence": round(100 * reply.confidence, 6)})

    def check(self, reply: Description) -> None:
        if not reply.caption.strip():
            raise InvalidReply("the caption is empty; say in a sentence or two what is seen")
        check_not_refused(reply.caption)


class Summary(Reasoned):
    """A summary of a whole video, after the reasoning that relates its parts."""

    model_config = described("What a video shows as a whole.")

    summary: str = Field(description="the description of the whole video")


@dataclass(frozen=True, kw_only=True)
class Summarize(Request[Summary]):
    """Summarize the one video in `videos` by the captions of its parts in `notes`."""

    Reply = Summary
    template: ClassVar[str] = "summarize"
    is_kept: ClassVar[bool] = True
    role: ClassVar[str] = "policy"
    temperature: ClassVar[float] = 0.0
    reply_tokens: ClassVar[int] = STEP_BY_STEP_TOKENS
    videos: tuple[Video, ...]
    notes: tuple[Note, ...]

    @property
    def bank(self) -> int:
        """The number of notes that are captions: all, so that the prompt begins as those do that read them later."""
        return len(self.notes)

    def check(self, reply: Summary) -> None:
        if not reply.summary.strip():
            raise InvalidReply("the summary is empty; say in a few sentences what the video shows")
        check_not_refused(reply.summary)
