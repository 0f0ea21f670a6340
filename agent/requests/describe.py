"""The request to describe a segment, for captions: not part of answering a question."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from agent.errors import InvalidReply
from agent.model import Request, ShownFrame
from agent.question import Segment
from agent.replies import Reply, Score


class Description(Reply):
    """What is seen, and how sure the model says it is, from 0 to 100."""

    caption: str
    confidence: Score


@dataclass(frozen=True, kw_only=True)
class DescribeSegment(Request[Description]):
    """What is to be seen in `segment`, judged by some of its frames."""

    Reply = Description
    template: ClassVar[str] = "describe_segment"
    role: ClassVar[str] = "vision"
    temperature: ClassVar[float] = 0.0
    segment: Segment
    frames: tuple[ShownFrame, ...]

    def check(self, reply: Description) -> None:
        if not reply.caption.strip():
            raise InvalidReply("the caption is empty; say in a sentence or two what is seen")
