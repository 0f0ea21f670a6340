"""Requests of VideoAgent: confidence in an answer, and frames that are missing (arXiv 2403.10517, section 3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import Field, model_validator

from agent.core.protocol import Reply, Request, SegmentNumber, described
from agent.core.question import Note, Question, Segment, Video
from agent.errors import InvalidReply

SURE = 3
"""The top of the scale: 1, the information is insufficient; 2, partly sufficient; 3, sufficient."""
Confidence = Annotated[SegmentNumber, Field(ge=1, le=SURE)]


class Reflection(Reply):
    """The confidence in an answer, from 1 to 3, after some reasoning."""

    model_config = described("Whether an answer has enough to rest on, from 1 to 3, after some reasoning.")

    thought: str
    confidence: Confidence

    @model_validator(mode="before")
    @classmethod
    def _accept(cls, value: object) -> object:
        return {"thought": "", **value} if isinstance(value, Mapping) else {"thought": "", "confidence": value}


class Wanted(Reply):
    """A description of a missing frame, and the segment in which to look for it."""

    model_config = described("What a frame should show, and the segment in which to look for it.")

    segment: SegmentNumber
    description: str


class Missing(Reply):
    """Frames to be looked for."""

    frames: list[Wanted]

    @model_validator(mode="before")
    @classmethod
    def _accept(cls, value: object) -> object:
        return {"frames": value} if isinstance(value, list) else value


@dataclass(frozen=True, kw_only=True)
class ReflectOnAnswer(Request[Reflection]):
    """Rate how far the `notes` suffice for the `answer` that they led to (Algorithm 1, SelfReflect)."""

    Reply = Reflection
    template: ClassVar[str] = "reflect_on_answer"
    role: ClassVar[str] = "policy"
    question: Question
    videos: tuple[Video, ...]
    notes: tuple[Note, ...]
    answer: str


@dataclass(frozen=True, kw_only=True)
class FindMissing(Request[Missing]):
    """Name frames to look for and their segments, at most `most` (Algorithm 1, FindMissingInfo)."""

    Reply = Missing
    template: ClassVar[str] = "find_missing"
    role: ClassVar[str] = "policy"
    question: Question
    videos: tuple[Video, ...]
    notes: tuple[Note, ...]
    segments: tuple[Segment, ...]
    most: int

    def check(self, reply: Missing) -> None:
        known = {segment.number for segment in self.segments}
        unknown = [each.segment for each in reply.frames if each.segment not in known]
        if unknown:
            raise InvalidReply(f"segment {unknown[0]} is not in the list; choose from {sorted(known)}")
        if not 1 <= len(reply.frames) <= self.most:
            raise InvalidReply(f"{len(reply.frames)} frames are described; describe 1 to {self.most}")
        if any(not each.description.strip() for each in reply.frames):
            raise InvalidReply("a description is empty; say in a few words what the frame should show")
