"""Requests to describe videos for any question: their replies are worth storing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pydantic import ConfigDict

from agent.core.protocol import Reply, Request, Score, ShownFrame
from agent.core.question import Note, Segment, Video
from agent.errors import InvalidReply

CLOSED = {"additionalProperties": False}
# What models are told of these replies, and part of the keys of cached ones: the texts stay.
SEEN = "What is seen, and how sure the model says it is, from 0 to 100."
SHOWN = "What a video shows as a whole."


class Description(Reply):
    """A caption of frames, and the model's confidence in it, from 0 to 100."""

    model_config = ConfigDict(json_schema_extra={**CLOSED, "description": SEEN})

    caption: str
    confidence: Score


@dataclass(frozen=True, kw_only=True)
class DescribeSegment(Request[Description]):
    """Describe `segment` by some of its frames."""

    Reply = Description
    template: ClassVar[str] = "describe_segment"
    role: ClassVar[str] = "captioner"
    temperature: ClassVar[float] = 0.0
    segment: Segment
    frames: tuple[ShownFrame, ...]

    def check(self, reply: Description) -> None:
        if not reply.caption.strip():
            raise InvalidReply("the caption is empty; say in a sentence or two what is seen")


class Summary(Reply):
    """A summary of a whole video."""

    model_config = ConfigDict(json_schema_extra={**CLOSED, "description": SHOWN})

    summary: str


@dataclass(frozen=True, kw_only=True)
class Summarize(Request[Summary]):
    """Summarize the one video in `videos` by the captions of its parts in `notes`."""

    Reply = Summary
    template: ClassVar[str] = "summarize"
    role: ClassVar[str] = "policy"
    temperature: ClassVar[float] = 0.0
    videos: tuple[Video, ...]
    notes: tuple[Note, ...]

    def check(self, reply: Summary) -> None:
        if not reply.summary.strip():
            raise InvalidReply("the summary is empty; say in a few sentences what the video shows")
