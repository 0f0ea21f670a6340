"""Requests to describe videos, whatever the question: their replies are worth keeping."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from agent.core.protocol import Request, ShownFrame
from agent.core.question import Note, Segment, Video
from agent.core.replies import Reply, Score
from agent.errors import InvalidReply


class Description(Reply):
    """What is seen, and how sure the model says it is, from 0 to 100."""

    caption: str
    confidence: Score


@dataclass(frozen=True, kw_only=True)
class DescribeSegment(Request[Description]):
    """What is to be seen in `segment`, judged by some of its frames."""

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
    """What a video shows as a whole."""

    summary: str


@dataclass(frozen=True, kw_only=True)
class Summarize(Request[Summary]):
    """What the one video in `videos` shows from beginning to end, by the captions of its parts in `notes`."""

    Reply = Summary
    template: ClassVar[str] = "summarize"
    role: ClassVar[str] = "policy"
    temperature: ClassVar[float] = 0.0
    videos: tuple[Video, ...]
    notes: tuple[Note, ...]

    def check(self, reply: Summary) -> None:
        if not reply.summary.strip():
            raise InvalidReply("the summary is empty; say in a few sentences what the video shows")
